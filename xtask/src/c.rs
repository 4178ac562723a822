//! The C library: its header made by cbindgen and compared with the committed one, the examples in C, C++ and Fortran compiled against an
//! installed copy and run, and the installation itself.
//!
//! All of it happens in target/c. A machine without a compiler says so and goes on.

use std::collections::BTreeSet;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::Message;
use clap::Args;

use crate::process::{Context, Failure, Result, cargo, must_succeed, root, show};

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Write include/blocktri.h instead of comparing it
    #[arg(long)]
    write: bool,
    /// Put the header, the Fortran module, both libraries and blocktri.pc there, optimized, and run the first example with them
    #[arg(long, value_name = "PREFIX")]
    install: Option<PathBuf>,
}

/// The files whose items are the header, in its order.
const SOURCES: [&str; 6] = ["status", "options", "matrix", "report", "solver", "lapack"];
/// What every compiler is asked for.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];
/// What a static library of Rust needs of the system.
const PRIVATE_LIBS: &str = if cfg!(target_os = "linux") { "-lgcc_s -lutil -lrt -lpthread -lm -ldl" } else { "-lm" };

/// Checks the header and runs the examples, or installs.
///
/// # Errors
/// When the header is not what the sources say, or something does not build or run.
pub fn run(options: &Options) -> Result<()> {
    // The profile in which no scalar is left unoptimized.
    const OPTIMIZED: [&str; 3] = ["--package=blocktri-c", "--profile", "wheel"];
    if let Some(prefix) = &options.install {
        let prefix = std::path::absolute(prefix).context(prefix.display())?;
        install(&build(&OPTIMIZED)?, &prefix)?;
        return first(&prefix);
    }
    header(options.write)?;
    check(&["--package=blocktri-c"])
}

/// Checks the header and runs the examples with the library as this selection of the workspace builds it.
///
/// # Errors
/// As [`run`].
pub fn run_all([workspace, features]: [&str; 2]) -> Result<()> {
    header(false)?;
    // With the examples of all crates, as tests have it: without them features of development dependencies are off, which is another build.
    check(&[workspace, features, "--lib", "--examples"])
}

/// The examples, with a library built so.
fn check(selection: &[&str]) -> Result<()> {
    fortran_is_complete()?;
    let prefix = root().join("target/c/installed");
    if prefix.exists() {
        fs::remove_dir_all(&prefix).context(prefix.display())?;
    }
    install(&build(selection)?, &prefix)?;
    examples(&prefix)
}

fn folder() -> PathBuf {
    root().join("crates/blocktri-c")
}

/// The header as cbindgen makes it.
fn made() -> Result<String> {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).map_err(Failure)?;
    let builder = cbindgen::Builder::new().with_config(config);
    let with_source =
        |builder: cbindgen::Builder, name: &&str| builder.with_src(folder().join(format!("src/{name}.rs")));
    let bindings = SOURCES.iter().fold(builder, with_source).generate().context("cbindgen")?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).context("the header")
}

/// Writes the header, or compares it.
fn header(write: bool) -> Result<()> {
    let path = folder().join("include/blocktri.h");
    let made = made()?;
    if write {
        return fs::write(&path, made).context(path.display());
    }
    let committed = fs::read_to_string(&path).context(path.display())?;
    match first_difference(&committed, &made) {
        None => Ok(()),
        Some(line) => Err(Failure(format!(
            "include/blocktri.h: line {line} is not what the sources say; `cargo xtask c --write`"
        ))),
    }
}

/// The first line, from 1, in which two texts differ.
fn first_difference(a: &str, b: &str) -> Option<usize> {
    let lines = a.lines().count().max(b.lines().count());
    (0..lines).find(|&i| a.lines().nth(i) != b.lines().nth(i)).map(|i| i + 1)
}

/// Every function of the header has its interface in the Fortran module, and no other has.
fn fortran_is_complete() -> Result<()> {
    let read = |path: &str| fs::read_to_string(folder().join(path)).context(path);
    let (header, module) =
        (functions_of_c(&read("include/blocktri.h")?), names_of_fortran(&read("fortran/blocktri.f90")?));
    let apart: Vec<&str> = header.symmetric_difference(&module).map(String::as_str).collect();
    if header.is_empty() || !apart.is_empty() {
        return Err(Failure(format!("the header or fortran/blocktri.f90 lacks {}", apart.join(", "))));
    }
    println!("{} functions in the header and in the Fortran module", header.len());
    Ok(())
}

/// Names before a parenthesis, outside comments.
fn functions_of_c(header: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut comment = false;
    for line in header.lines() {
        comment |= line.trim_start().starts_with("/*");
        if !comment
            && !line.starts_with("typedef")
            && let Some((before, _)) = line.split_once('(')
            && let Some(name) = before.rsplit([' ', '*']).next().filter(|name| name.starts_with("blocktri_"))
        {
            names.insert(name.to_owned());
        }
        comment &= !line.contains("*/");
    }
    names
}

/// What `bind(c, name="…")` names.
fn names_of_fortran(module: &str) -> BTreeSet<String> {
    let bound = module.split("bind(c, name=\"").skip(1).filter_map(|rest| rest.split('"').next());
    bound.filter(|name| name.starts_with("blocktri_")).map(str::to_owned).collect()
}

/// The static and the shared library.
fn build(selection: &[&str]) -> Result<Vec<PathBuf>> {
    let mut command = cargo(["build"]);
    command.args(selection);
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let shown = show(&command);
    let mut child = command.spawn().context(&shown)?;
    let mut libraries = Vec::new();
    for message in child.stdout.take().into_iter().flat_map(|out| Message::parse_stream(BufReader::new(out))) {
        if let Message::CompilerArtifact(artifact) = message.context(&shown)?
            && artifact.target.name == "blocktri_c"
        {
            libraries
                .extend(artifact.filenames.into_iter().map(cargo_metadata::camino::Utf8PathBuf::into_std_path_buf));
        }
    }
    let status = child.wait().context(&shown)?;
    libraries.retain(|file| file.extension().is_none_or(|extension| extension != "rlib" && extension != "rmeta"));
    if status.success() && libraries.len() >= 2 {
        return Ok(libraries);
    }
    Err(Failure(format!("{shown}: {status}, {} libraries", libraries.len())))
}

/// Puts everything where C compilers look for it below `prefix`.
fn install(libraries: &[PathBuf], prefix: &Path) -> Result<()> {
    let [include, lib] = ["include", "lib"].map(|name| prefix.join(name));
    let pkgconfig = lib.join("pkgconfig");
    for made in [&include, &pkgconfig] {
        fs::create_dir_all(made).context(made.display())?;
    }
    let put = |from: &Path, to: PathBuf| -> Result<()> {
        println!("{}", to.display());
        // What programs have open stays as it is.
        let _ = fs::remove_file(&to);
        fs::copy(from, &to).context(to.display())?;
        Ok(())
    };
    put(&folder().join("include/blocktri.h"), include.join("blocktri.h"))?;
    put(&folder().join("fortran/blocktri.f90"), include.join("blocktri.f90"))?;
    for library in libraries {
        let name = library
            .file_name()
            .map(|name| name.to_string_lossy().replace("blocktri_c", "blocktri"))
            .unwrap_or_default();
        if library.extension().is_some_and(|extension| extension == "so") {
            let version = env!("CARGO_PKG_VERSION");
            let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
            put(library, lib.join(format!("{name}.{version}")))?;
            link(&format!("{name}.{version}"), &lib.join(format!("{name}.{minor}")))?;
            link(&format!("{name}.{minor}"), &lib.join(&name))?;
        } else {
            put(library, lib.join(&name))?;
        }
    }
    let pc = pkgconfig.join("blocktri.pc");
    println!("{}", pc.display());
    fs::write(&pc, pc_file(prefix)).context(pc.display())
}

/// A name for another file of the same folder.
fn link(to: &str, name: &Path) -> Result<()> {
    println!("{} -> {to}", name.display());
    let _ = fs::remove_file(name);
    #[cfg(unix)]
    return std::os::unix::fs::symlink(to, name).context(name.display());
    #[cfg(not(unix))]
    return fs::copy(name.with_file_name(to), name).map(|_| ()).context(name.display());
}

fn pc_file(prefix: &Path) -> String {
    format!(
        "prefix={}\nincludedir=${{prefix}}/include\nlibdir=${{prefix}}/lib\n\nName: blocktri\n\
         Description: Tridiagonal, banded, block-tridiagonal and sparse linear systems, solved with a certificate\n\
         URL: https://github.com/blocktri/blocktri\nVersion: {}\nCflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -lblocktri\nLibs.private: {PRIVATE_LIBS}\n",
        prefix.display(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Which library an example links with.
#[derive(Clone, Copy, PartialEq)]
enum Linked {
    Shared,
    Static,
}

/// Compiles and runs what the page shows first, with the flags that pkg-config gives of what is installed.
fn first(prefix: &Path) -> Result<()> {
    let Some(cc) = compiler("CC", &["cc", "gcc", "clang"]) else {
        println!("not tried: there is no C compiler");
        return Ok(());
    };
    let programs = root().join("target/c");
    fs::create_dir_all(&programs).context(programs.display())?;
    example(Command::new(&cc).arg("-std=c99").args(WARNINGS), "first.c", Linked::Shared, prefix)
}

/// Compiles and runs the examples against what is installed.
fn examples(prefix: &Path) -> Result<()> {
    let header = prefix.join("include/blocktri.h");
    let Some(cc) = compiler("CC", &["cc", "gcc", "clang"]) else {
        println!("skipped: there is no C compiler");
        return Ok(());
    };
    for std in ["-std=c99", "-std=c11"] {
        must_succeed(Command::new(&cc).args([std, "-fsyntax-only", "-x", "c"]).args(WARNINGS).arg(&header))?;
    }
    let c99 = || {
        let mut command = Command::new(&cc);
        command.arg("-std=c99").args(WARNINGS);
        command
    };
    example(&mut c99(), "first.c", Linked::Shared, prefix)?;
    for linked in [Linked::Shared, Linked::Static] {
        example(&mut c99(), "smoother.c", linked, prefix)?;
    }
    example(Command::new(&cc).args(["-std=c11", "-pthread"]).args(WARNINGS), "threads.c", Linked::Shared, prefix)?;
    match compiler("CXX", &["c++", "g++", "clang++"]) {
        Some(cxx) => {
            must_succeed(
                Command::new(&cxx).args(["-std=c++11", "-fsyntax-only", "-x", "c++"]).args(WARNINGS).arg(&header),
            )?;
            example(Command::new(&cxx).arg("-std=c++11").args(WARNINGS), "scalars.cpp", Linked::Shared, prefix)?;
        }
        None => println!("skipped: there is no C++ compiler"),
    }
    match compiler("FC", &["gfortran"]) {
        Some(fc) => {
            let modules = root().join("target/c");
            let strict = ["-std=f2018", "-Wall", "-Wextra", "-Werror", "-J"];
            let mut command = Command::new(&fc);
            command.args(strict).arg(&modules).arg(prefix.join("include/blocktri.f90"));
            example(&mut command, "heat.f90", Linked::Shared, prefix)?;
        }
        None => println!("skipped: there is no Fortran compiler"),
    }
    Ok(())
}

/// Compiles one program with a compiler and its options, and runs it.
fn example(compile: &mut Command, source: &str, linked: Linked, prefix: &Path) -> Result<()> {
    let how = if linked == Linked::Static { "-static" } else { "" };
    let program = root().join("target/c").join(format!("{}{how}", source.replace('.', "-")));
    compile.arg(folder().join("examples").join(source)).arg("-o").arg(&program);
    let lib = prefix.join("lib");
    match linked {
        Linked::Shared => compile.args(flags(prefix)).arg(format!("-Wl,-rpath,{}", lib.display())),
        Linked::Static => {
            compile.arg(format!("-I{}", prefix.join("include").display())).arg(lib.join("libblocktri.a"));
            compile.args(PRIVATE_LIBS.split(' '))
        }
    };
    must_succeed(compile.arg("-lm"))?;
    println!("$ {source}{}", if how.is_empty() { "" } else { ", static" });
    must_succeed(&mut Command::new(&program))
}

/// What pkg-config says of the installed library; the same without it.
fn flags(prefix: &Path) -> Vec<String> {
    let pkgconfig = prefix.join("lib/pkgconfig");
    let asked =
        Command::new("pkg-config").args(["--cflags", "--libs", "blocktri"]).env("PKG_CONFIG_PATH", pkgconfig).output();
    match asked {
        Ok(told) if told.status.success() => {
            String::from_utf8_lossy(&told.stdout).split_whitespace().map(str::to_owned).collect()
        }
        _ => {
            println!("without pkg-config");
            let [include, lib] = ["include", "lib"].map(|name| prefix.join(name).display().to_string());
            vec![format!("-I{include}"), format!("-L{lib}"), "-lblocktri".into()]
        }
    }
}

/// The first compiler that answers: the one that a variable names, or one of these.
fn compiler(variable: &str, names: &[&str]) -> Option<String> {
    let named = std::env::var(variable).ok().filter(|name| !name.is_empty());
    let mut all = named.into_iter().chain(names.iter().map(|&name| name.to_owned()));
    all.find(|name| {
        let asked = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\
/**
 * Comments name blocktri_nothing(too).
 */
typedef int32_t (*blocktri_monitor)(void *context);
const char *blocktri_version(void);
enum blocktri_status blocktri_solve_d(const struct blocktri_matrix *matrix,
                                      int64_t n);
";

    #[test]
    fn names_of_both_languages_are_found() {
        let expected: BTreeSet<String> = ["blocktri_solve_d", "blocktri_version"].map(str::to_owned).into();
        assert_eq!(functions_of_c(HEADER), expected);
        let module = "function a() bind(c, name=\"blocktri_version\")\nfunction b() &\n bind(c, name=\"blocktri_solve_d\")\n\
                      function c() bind(c, name=\"strlen\")";
        assert_eq!(names_of_fortran(module), expected);
    }

    #[test]
    fn the_first_difference_is_a_line() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
    }
}
