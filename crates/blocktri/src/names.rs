//! Names that parse into values.

use crate::error::Error;

/// The one of this name.
pub(crate) fn by_name<T>(
    what: &'static str,
    all: Vec<T>,
    name_of: impl Fn(&T) -> &'static str,
    name: &str,
) -> Result<T, Error> {
    let known = names(&all, &name_of);
    let found = all.into_iter().find(|one| name_of(one) == name);
    found.ok_or_else(|| Error::UnknownName { what, name: name.into(), known })
}

/// Names, for messages.
pub(crate) fn names<T>(all: &[T], name: impl Fn(&T) -> &'static str) -> String {
    all.iter().map(name).collect::<Vec<_>>().join(", ")
}
