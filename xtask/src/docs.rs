//! `cargo xtask docs`: the book into target/book, the API documentation into target/doc.
//!
//! mdBook is a library here: `docs/builder` is a package outside the workspace, so that neither a build nor a test of
//! the workspace ever compiles it.

use crate::process::{Result, cargo, must_succeed};

/// Arguments of the API documentation's build. The command is left out: its binary has the library's name.
pub const RUSTDOC: [&str; 4] = ["doc", "--workspace", "--no-deps", "--lib"];

/// Builds both.
pub fn run() -> Result<()> {
    let builder = ["run", "--quiet", "--release", "--manifest-path", "docs/builder/Cargo.toml"];
    must_succeed(cargo(builder).args(["--target-dir", "target/docs-builder", "--", "docs", "target/book"]))?;
    must_succeed(cargo(RUSTDOC).env("RUSTDOCFLAGS", "-D warnings"))?;
    println!("target/book/index.html\ntarget/doc/blocktri/index.html");
    Ok(())
}
