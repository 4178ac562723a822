//! The name of a method in its three spellings.

use crate::process::{Failure, Result};

/// A name in kebab case, one that Rust can spell too.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// As commands and reports spell it: `band-qr`.
    pub kebab: String,
    /// Of the module and the file: `band_qr`.
    pub snake: String,
    /// Of the type: `BandQr`.
    pub camel: String,
}

impl Name {
    /// Reads a name.
    ///
    /// # Errors
    /// When it is not words of small letters and digits with single hyphens between, the first letter a letter, or when Rust keeps it
    /// for itself.
    pub(super) fn read(given: &str) -> Result<Self> {
        let is_word =
            |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !given.split('-').all(is_word) || !given.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(Failure(format!(
                "'{given}' is not a name such as band-qr: small letters and digits, with hyphens between words"
            )));
        }
        let snake = given.replace('-', "_");
        let camel: String = given.split('-').map(capitalized).collect();
        if [&snake, &camel].iter().any(|name| syn::parse_str::<syn::Ident>(name).is_err()) {
            return Err(Failure(format!("'{given}' is a word of Rust's own")));
        }
        Ok(Self { kebab: given.to_owned(), snake, camel })
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_three_spellings() {
        let name = Name::read("band-lu2-once").unwrap();
        assert_eq!([&*name.kebab, &*name.snake, &*name.camel], ["band-lu2-once", "band_lu2_once", "BandLu2Once"]);
    }

    #[test]
    fn other_names_are_refused() {
        for bad in
            ["", "BandQr", "band_qr", "band--qr", "-qr", "qr-", "2-steps", "bänd", "band qr", "../qr", "match", "self"]
        {
            assert!(Name::read(bad).is_err(), "{bad:?} was taken");
        }
    }
}
