//! The lines `mod` and `pub use` of a new method among those of a lib.rs.

use super::name::Name;

/// The lines of a new method.
pub(super) fn lines(name: &Name) -> [String; 2] {
    [format!("mod {};", name.snake), format!("pub use {}::{};", name.snake, name.camel)]
}

/// The text with both lines; `None` where their places are not plain: no such lines, or not in the order of their names.
pub(super) fn with_lines(text: &str, name: &Name) -> Option<String> {
    let [module, import] = lines(name);
    let text = insert(text, &name.snake, &module, module_of)?;
    insert(&text, &name.snake, &import, import_of)
}

/// Whether a lib.rs has something of this name.
pub(super) fn names(text: &str, name: &Name) -> bool {
    let is_word = |word: &str| word == name.snake || word == name.camel;
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')).any(is_word)
}

/// Puts a line in front of the first of its kind with a later name, and of what stands on top of that one, else behind the last.
fn insert(text: &str, name: &str, new: &str, name_of: fn(&str) -> Option<&str>) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let found: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(i, line)| Some((i, name_of(line)?))).collect();
    if found.is_empty() || !found.is_sorted_by_key(|f| f.1) {
        return None;
    }
    let at = match found.iter().find(|f| f.1 > name) {
        Some(&(mut at, _)) => {
            while at > 0 && (lines[at - 1].starts_with("#[") || lines[at - 1].starts_with("//")) {
                at -= 1;
            }
            at
        }
        None => end_of(&lines, found.last()?.0) + 1,
    };
    let mut out: Vec<&str> = lines[..at].to_vec();
    out.push(new);
    out.extend(&lines[at..]);
    Some(out.join("\n") + "\n")
}

/// The last line of an item that begins at a line.
fn end_of(lines: &[&str], start: usize) -> usize {
    (start..lines.len()).find(|&i| lines[i].ends_with(';')).unwrap_or(start)
}

/// The name in a line such as `pub mod band_lu;`.
fn module_of(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    line.strip_prefix("mod ")?.strip_suffix(';')
}

/// The module in a line such as `pub use band_lu::BandLu;`.
fn import_of(line: &str) -> Option<&str> {
    line.strip_prefix("pub use ")?.split_once("::").map(|(module, _)| module)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "\
//! Methods.

pub mod band_lu;
/// Hidden.
#[doc(hidden)]
pub mod instances;
mod thomas;

pub use band_lu::{
    BandLu, Boosting,
};
pub use thomas::Thomas;
";

    fn with(name: &str) -> Option<String> {
        with_lines(LIB, &Name::read(name).unwrap())
    }

    #[test]
    fn lines_stand_in_the_order_of_names() {
        let first = LIB.replace("pub mod band_lu;", "mod aitken;\npub mod band_lu;");
        let first = first.replace("pub use band_lu::{", "pub use aitken::Aitken;\npub use band_lu::{");
        assert_eq!(with("aitken"), Some(first));
        let middle = LIB.replace("/// Hidden.", "mod band_qr;\n/// Hidden.");
        let middle = middle.replace("pub use thomas", "pub use band_qr::BandQr;\npub use thomas");
        assert_eq!(with("band-qr"), Some(middle));
        let last = LIB.replace("mod thomas;", "mod thomas;\nmod zolotarev;") + "pub use zolotarev::Zolotarev;\n";
        assert_eq!(with("zolotarev"), Some(last));
    }

    #[test]
    fn places_that_are_not_plain_are_left_alone() {
        let name = Name::read("band-qr").unwrap();
        assert_eq!(with_lines("mod b;\nmod a;\npub use a::A;\n", &name), None);
        assert_eq!(with_lines("mod a;\n", &name), None);
    }

    #[test]
    fn names_in_use_are_seen() {
        for used in ["thomas", "band-lu", "boosting", "instances"] {
            assert!(names(LIB, &Name::read(used).unwrap()), "{used}");
        }
        for free in ["band-qr", "band", "methods"] {
            assert!(!names(LIB, &Name::read(free).unwrap()), "{free}");
        }
    }
}
