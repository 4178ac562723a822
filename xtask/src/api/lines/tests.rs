//! Listings of small sources.

use std::collections::BTreeMap;

use super::super::source::read;
use super::list;

/// Lines of a crate `x` that is one file: shown ones, then hidden ones behind "hidden: ".
fn lines(text: &'static str) -> Vec<String> {
    of_files(&[("lib.rs", text)])
}

fn of_files(files: &[(&'static str, &'static str)]) -> Vec<String> {
    let files: BTreeMap<_, _> = files.iter().copied().collect();
    let (shown, hidden) = list(&read("x", std::path::Path::new("lib.rs"), &files).unwrap());
    shown.into_iter().chain(hidden.into_iter().map(|line| format!("hidden: {line}"))).collect()
}

#[test]
fn a_structure_with_what_is_public_in_it() {
    let text = "
        /// About.
        #[derive(Debug, Clone)]
        pub struct S<T: Copy = u8> { pub b: Vec<T>, a: u8, pub(crate) c: u8 }
        impl<T: Copy> S<T> {
            pub const N: usize = 3;
            pub fn new(
                b: Vec<T>,
            ) -> Self { Self { b, a: 0, c: 0 } }
            fn private(&self) {}
            pub(crate) fn inner(&self) {}
        }
        impl S<f64> { pub fn sum(&self) -> f64 { 0.0 } }
        struct P;
        impl P { pub fn unseen() {} }
    ";
    assert_eq!(
        lines(text),
        [
            "pub struct x::S<T: Copy = u8> { .. } [derive Clone, Debug]",
            "field x::S::b: Vec<T>",
            "pub const x::S<T>::N: usize where T: Copy",
            "pub fn x::S<T>::new(b: Vec<T>) -> Self where T: Copy",
            "pub fn x::S<f64>::sum(&self) -> f64",
        ]
    );
}

#[test]
fn an_enumeration_with_its_variants() {
    let text =
        "#[non_exhaustive] pub enum E { B { n: usize, m: u8 }, A(f64), C = 3 } pub struct U; pub struct W(pub u8);";
    assert_eq!(
        lines(text),
        [
            "pub enum x::E [non_exhaustive]",
            "variant x::E::A(f64)",
            "variant x::E::B { n: usize, m: u8 }",
            "variant x::E::C = 3",
            "pub struct x::U",
            "pub struct x::W(pub u8)",
        ]
    );
}

#[test]
fn a_trait_says_what_must_be_given() {
    let text = "pub trait Solve<T>: Send { type Out: Copy; const K: usize = 1; fn n(&self) -> usize; fn m(&self) -> usize { 1 } }";
    assert_eq!(
        lines(text),
        [
            "pub trait x::Solve<T>: Send",
            "const x::Solve::K: usize { .. }",
            "type x::Solve::Out: Copy",
            "fn x::Solve::m(&self) -> usize { .. }",
            "fn x::Solve::n(&self) -> usize",
        ]
    );
}

#[test]
fn functions_values_and_aliases() {
    let text = "
        pub const N: usize = 1 + 1;
        pub static S: &str = \"s\";
        pub type Result<T, E = Error> = std::result::Result<T, E>;
        pub unsafe fn f<T>(x: &[T]) where T: Send {}
        fn g() {}
    ";
    assert_eq!(
        lines(text),
        [
            "pub const x::N: usize",
            "pub type x::Result<T, E = Error> = std::result::Result<T, E>",
            "pub static x::S: &str",
            "pub unsafe fn x::f<T>(x: &[T]) where T: Send",
        ]
    );
}

#[test]
fn items_stand_under_their_shortest_path() {
    let text = "pub mod a { pub struct S; impl S { pub fn f() {} } } pub use a::S as R;";
    assert_eq!(lines(text), ["pub struct x::R", "pub fn x::R::f()", "pub mod x::a", "alias x::a::S = x::R"]);
}

#[test]
fn globs_renames_and_nested_modules_in_files() {
    let found = of_files(&[
        ("lib.rs", "mod a; pub mod b; pub use a::*; pub use b::inner as deep;"),
        ("a.rs", "pub fn f() {} pub(crate) fn g() {} pub use crate::b::inner::h as i;"),
        ("b.rs", "pub mod inner;"),
        ("b/inner.rs", "pub fn h() {}"),
    ]);
    assert_eq!(
        found,
        [
            "pub mod x::b",
            "alias x::b::inner = x::deep",
            "alias x::b::inner::h = x::i",
            "pub mod x::deep",
            "alias x::deep::h = x::i",
            "pub fn x::f()",
            "pub fn x::i()",
        ]
    );
}

#[test]
fn other_crates_are_named() {
    let text = "pub use other; pub use other::deep::{A, B as C}; pub use more::*; use hidden::D;";
    assert_eq!(
        lines(text),
        [
            "pub use more::* as x::*",
            "pub use other::deep::A as x::A",
            "pub use other::deep::B as x::C",
            "pub use other as x::other",
        ]
    );
}

#[test]
fn features_are_named_and_tests_left_out() {
    let text = "
        #[cfg(feature = \"a\")] pub mod m { pub struct S; #[cfg(unix)] impl S { #[cfg(feature = \"b\")] pub fn f() {} } }
        #[cfg(test)] pub fn t() {}
        pub enum E { #[cfg(feature = \"a\")] V, #[cfg(test)] W }
        #[cfg(feature = \"a\")] pub fn g() {}
        #[cfg(not(feature = \"a\"))] pub fn g() {}
    ";
    assert_eq!(
        lines(text),
        [
            "pub enum x::E",
            "variant x::E::V [feature a]",
            "pub fn x::g() [feature a]",
            "pub fn x::g() [not(feature a)]",
            "pub mod x::m [feature a]",
            "pub struct x::m::S [feature a]",
            "pub fn x::m::S::f() [feature a, feature b, unix]",
        ]
    );
}

#[test]
fn what_documentation_hides_comes_last() {
    let text = "
        #[doc(hidden)] pub fn a() {}
        #[doc(hidden)] pub mod m { pub fn f() {} }
        pub struct S { #[doc(hidden)] pub h: u8, pub v: u8 }
        impl S { #[doc(hidden)] pub fn g(&self) {} }
        #[doc = \" hidden, no\"] pub fn z() {}
    ";
    assert_eq!(
        lines(text),
        [
            "pub struct x::S {}",
            "field x::S::v: u8",
            "pub fn x::z()",
            "hidden: pub fn x::S::g(&self)",
            "hidden: field x::S::h: u8",
            "hidden: pub fn x::a()",
            "hidden: pub mod x::m",
            "hidden: pub fn x::m::f()",
        ]
    );
}

#[test]
fn implementations_are_listed_where_both_have_names() {
    let text = "
        use std::fmt;
        mod inner {
            use super::Solve as Same;
            pub struct S<T>(T);
            impl<T: Copy> Same<T> for S<T> where T: Send {}
            struct P;
            impl<T> Same<T> for P {}
            impl From<P> for S<u8> {}
            trait Quiet {}
            impl<T> Quiet for S<T> {}
        }
        pub use inner::S;
        pub trait Solve<T> {}
        impl fmt::Display for S<f64> {}
        impl Iterator for S<u8> { type Item = u8; fn next(&mut self) -> Option<u8> { None } }
        impl<T, F: Solve<T> + ?Sized> Solve<T> for Box<F> {}
        unsafe impl<T> Send for S<T> {}
    ";
    let found = lines(text);
    let implementations: Vec<&str> = found.iter().map(String::as_str).filter(|l| l.contains("impl")).collect();
    assert_eq!(
        implementations,
        [
            "impl Iterator for x::S<u8> { type Item = u8 }",
            "impl std::fmt::Display for x::S<f64>",
            "impl<T: Copy> x::Solve<T> for x::S<T> where T: Send",
            "unsafe impl<T> Send for x::S<T>",
            "impl<T, F: Solve<T> + ?Sized> x::Solve<T> for Box<F>",
        ]
    );
}

#[test]
fn macros_that_make_items_are_told() {
    let text = "
        mod any {
            macro_rules! make { ($name:ident) => { pub struct $name; } }
            make! { #[doc = \"about\"] Any }
            #[cfg(feature = \"f32\")] number!(f32);
            impl Any { pub fn kind(&self) {} }
            impl Clone for Any {}
        }
        mod quiet { number!(f64); }
        pub use any::Any;
        #[macro_export] macro_rules! shout { () => {} }
    ";
    assert_eq!(
        lines(text),
        [
            "macro-made: x::Any",
            "impl Clone for x::Any",
            "pub fn x::Any::kind(&self)",
            "macro-made: x::any: make!(Any)",
            "macro-made: x::any: number!(f32) [feature f32]",
            "macro x::shout!",
        ]
    );
}

#[test]
fn long_calls_are_cut() {
    let text = "pub mod m { numbers!(aaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbb, cccccccccccccccccccc, dddddddddddddddddddd); }";
    let found = lines(text);
    assert!(found[1].ends_with("dddddddddddddd …)"), "{found:?}");
}

#[test]
fn what_is_in_an_item_comes_right_behind_it() {
    let text = "pub struct S; pub struct S2; impl S { pub fn f() {} } impl Clone for S {} pub struct T<U>(U); impl T<u8> { pub fn g() {} } pub fn t() {}";
    assert_eq!(
        lines(text),
        [
            "pub struct x::S",
            "impl Clone for x::S",
            "pub fn x::S::f()",
            "pub struct x::S2",
            "pub struct x::T<U>(_)",
            "pub fn x::T<u8>::g()",
            "pub fn x::t()",
        ]
    );
}

#[test]
fn the_order_of_the_sources_does_not_matter() {
    let forth = "pub fn a() {} pub struct S; impl S { pub fn f() {} pub fn g() {} } pub mod m { pub use super::S; }";
    let back =
        "pub mod m { pub use super::S; } impl S { pub fn g() {} } impl S { pub fn f() {} } pub struct S; pub fn a() {}";
    assert_eq!(lines(forth), lines(back));
}
