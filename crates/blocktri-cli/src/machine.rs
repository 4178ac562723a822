//! `blocktri calibrate`: the constants that predictions rest on, measured and kept in the user's cache folder.
//!
//! The file, `$XDG_CACHE_HOME/blocktri/machine.json` or `~/.cache/blocktri/machine.json`, has a set of constants for every processor,
//! instruction set, number of threads and version that was measured. Where there is none for those at hand, that is told, as is a file
//! that cannot be read.

use std::path::{Path, PathBuf};

use blocktri::{CancelToken, Machine, Progress};
use bt_formats::write_atomically;
use serde_json::{Map, Value, json};

use crate::args::{CalibrateArgs, Global};
use crate::exit::{Exit, Failure, Reply, Result};
use crate::progress::Line;
use crate::report::Page;

/// Runs the command.
///
/// # Errors
/// When there is no cache folder, or it cannot be written to.
pub fn run(args: &CalibrateArgs, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    let file = file().ok_or_else(|| {
        Failure::usage("there is no cache folder: neither XDG_CACHE_HOME nor HOME is set").help("set one of them")
    })?;
    if args.reset {
        let removed = match std::fs::remove_file(&file) {
            Ok(()) => true,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
            Err(e) => return Err(Failure::io(&file, &e)),
        };
        let text = if removed { "removed" } else { "there was none" };
        let json = json!({ "schema": 1, "file": file.display().to_string(), "removed": removed });
        return Ok(Reply {
            exit: Exit::Done,
            json,
            text: format!("{}: {text}\n", file.display()),
            warnings: Vec::new(),
        });
    }
    let (machine, notes) = if args.show {
        let notes = load();
        (Machine::here().clone(), notes)
    } else {
        measure(&file, global, cancel)?
    };
    let mut page = Page::new(format!("machine: {}", fingerprint()));
    let mut constants = Map::new();
    for (name, value) in machine.constants() {
        let unit = match name.rsplit_once('.').map(|(_, last)| last) {
            Some("bandwidth") => "bytes a second",
            Some("flops") => "flops a second",
            _ => "seconds",
        };
        page.line(&name, format_args!("{value:.2e} {unit}"));
        constants.insert(name, value.into());
    }
    for note in &notes {
        page.line("note", note);
    }
    let json = json!({
        "schema": 1, "file": file.display().to_string(), "machine": fingerprint(), "constants": constants, "notes": notes,
    });
    Ok(Reply { exit: Exit::Done, json, text: page.finish(), warnings: Vec::new() })
}

/// Measures, and keeps what was found in the file.
fn measure(file: &Path, global: &Global, cancel: &CancelToken) -> Result<(Machine, Vec<String>)> {
    let line = Line::spinner(!global.quiet, "measuring this machine".into());
    let mut watch = |_: Progress| {
        if cancel.is_cancelled() { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    let machine = blocktri::calibrate(&mut watch)
        .map_err(|e| if cancel.is_cancelled() { Failure::interrupted() } else { Failure::usage(e.to_string()) })?;
    drop(line);
    let constants: Map<String, Value> = machine.constants().into_iter().map(|(k, v)| (k, v.into())).collect();
    // What was measured on other machines, or with other numbers of threads, stays.
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut measured = measured(&text).unwrap_or_default();
    measured.insert(fingerprint(), constants.into());
    let json = json!({ "schema": 2, "measured": measured });
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|e| Failure::io(folder, &e))?;
    }
    write_atomically(file, |w| writeln!(w, "{json:#}")).map_err(|e| Failure::io(file, &e))?;
    Ok((machine, vec![format!("written to {}", file.display())]))
}

/// Lets predictions rest on the constants measured here, if there are any; what stands against it.
pub fn load() -> Vec<String> {
    let Some(file) = file() else { return Vec::new() };
    let Ok(text) = std::fs::read_to_string(&file) else { return Vec::new() };
    let ignored =
        |why: String| vec![format!("{}: {why}; ignored, 'blocktri calibrate' measures again", file.display())];
    let measured = match measured(&text) {
        Ok(measured) => measured,
        Err(why) => return ignored(why.into()),
    };
    let Some(constants) = measured.get(&fingerprint()) else {
        let others: Vec<&str> = measured.keys().map(String::as_str).collect();
        return ignored(format!("measured on {}, and not on {}", others.join(" and "), fingerprint()));
    };
    let given = constants
        .as_object()
        .map(|constants| constants.iter().filter_map(|(k, v)| Some((k.clone(), v.as_f64()?))).collect::<Vec<_>>());
    let set = Machine::with_constants(&given.unwrap_or_default()).and_then(Machine::set);
    set.map_or_else(|e| ignored(e.to_string()), |()| Vec::new())
}

/// Sets of constants by what they belong to.
fn measured(text: &str) -> std::result::Result<Map<String, Value>, &'static str> {
    let mut json = serde_json::from_str::<Value>(text).map_err(|_| "the file is cut or no JSON")?;
    match json.get_mut("measured").map(Value::take) {
        Some(Value::Object(measured)) => Ok(measured),
        _ => Err("the file does not name its machines"),
    }
}

fn file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(folder.join("blocktri").join("machine.json"))
}

/// What the constants belong to.
fn fingerprint() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    format!(
        "{}, {}, {} threads, blocktri {}",
        model.unwrap_or(std::env::consts::ARCH),
        Machine::instruction_set(),
        rayon::current_num_threads(),
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_named_by_what_constants_depend_on() {
        let name = fingerprint();
        assert!(name.contains(&format!("{} threads", rayon::current_num_threads())), "{name}");
        assert!(name.ends_with(env!("CARGO_PKG_VERSION")), "{name}");
    }
}
