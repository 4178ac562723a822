//! In crates that have none, no files import each other in a circle: there is an order in which they can be read.
//!
//! A file needs another where it names a path into it, `crate::plan::Plan` or `super::open`; paths in tests do not count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Violation;
use crate::process::{Context, Result};

/// Crates without a circle.
const WITHOUT: [&str; 6] =
    ["crates/blocktri", "crates/bt-direct", "crates/bt-queue", "crates/bt-simd", "crates/bt-testkit", "xtask"];

/// Modules by their paths in the crate, and the modules that each names.
type Graph = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// The crates of [`WITHOUT`]; `files` are those of the workspace.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for folder in WITHOUT {
        let sources = format!("{folder}/src/");
        let mut texts = BTreeMap::new();
        let is_rust = |file: &str| Path::new(file).extension().is_some_and(|extension| extension == "rs");
        for file in files.iter().filter(|file| file.starts_with(&sources) && is_rust(file)) {
            let module = module(&file[sources.len()..]);
            texts.insert(module, fs::read_to_string(root.join(file)).context(file)?);
        }
        // What a library re-exports is no reason to read it first.
        texts.retain(|module, _| !module.is_empty());
        if let Some(circle) = circle(&graph(&texts)?) {
            let names: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
            let reason = format!("a circle of files: {} → {}", names.join(" → "), names[0]);
            violations.push(Violation { file: folder.to_owned(), reason });
        }
    }
    Ok(violations)
}

/// The path of a module in its crate, of the file below `src`; empty for the root.
fn module(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    let names = path.split('/').filter(|name| !matches!(*name, "lib" | "main" | "instances"));
    names.map(str::to_owned).collect()
}

fn graph(texts: &BTreeMap<Vec<String>, String>) -> Result<Graph> {
    let mut graph = Graph::new();
    for (module, text) in texts {
        let tokens: TokenStream = text.parse().context(module.join("::"))?;
        let mut paths = Vec::new();
        collect(&without_tests(tokens), module, &mut paths);
        let named = paths.into_iter().filter_map(|path| {
            // The module is the longest beginning that is one.
            (1..=path.len()).rev().map(|k| path[..k].to_vec()).find(|beginning| texts.contains_key(beginning))
        });
        graph.insert(module.clone(), named.filter(|other| other != module).collect());
    }
    Ok(graph)
}

/// What stands outside of modules for tests.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut for_tests = false;
    for token in tokens {
        match &token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                for_tests = group.stream().to_string().replace(' ', "") == "cfg(test)";
                kept.push(token);
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && for_tests => for_tests = false,
            _ => kept.push(token),
        }
    }
    kept
}

/// All paths that begin with `crate`, `super` or `self`, from the root of the crate.
fn collect(tokens: &[TokenTree], module: &[String], paths: &mut Vec<Vec<String>>) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(word) if is_path(tokens, at + 1) => {
                let start = match word.to_string().as_str() {
                    "crate" => Some(Vec::new()),
                    "self" => Some(module.to_vec()),
                    "super" => Some(module[..module.len() - 1].to_vec()),
                    _ => None,
                };
                at = match start {
                    Some(start) => tree(tokens, at + 1, start, paths),
                    // Names behind the first are no beginnings.
                    None => tree(tokens, at + 1, Vec::new(), &mut Vec::new()),
                };
            }
            // Inside of a module in braces `super` is this one.
            TokenTree::Ident(word) if word == "mod" && is_braced(tokens.get(at + 2)) => {
                let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(group))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                else {
                    at += 1;
                    continue;
                };
                let inner = [module, &[name.to_string()]].concat();
                collect(&group.stream().into_iter().collect::<Vec<_>>(), &inner, paths);
                at += 3;
            }
            TokenTree::Group(group) => {
                collect(&group.stream().into_iter().collect::<Vec<_>>(), module, paths);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

fn is_braced(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace)
}

/// Whether `::` stands there.
fn is_path(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |k: usize| matches!(tokens.get(k), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(at) && colon(at + 1)
}

/// The rest of a path, `::a::b` or `::a::{b, c::d}`, and the place behind it.
fn tree(tokens: &[TokenTree], mut at: usize, mut path: Vec<String>, paths: &mut Vec<Vec<String>>) -> usize {
    while is_path(tokens, at) {
        match tokens.get(at + 2) {
            Some(TokenTree::Ident(name)) if name == "super" => drop(path.pop()),
            Some(TokenTree::Ident(name)) => path.push(name.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                let comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
                for branch in inner.split(comma) {
                    let Some(TokenTree::Ident(name)) = branch.first() else { continue };
                    let mut beginning = path.clone();
                    if name != "self" {
                        beginning.push(name.to_string());
                    }
                    tree(branch, 1, beginning, paths);
                }
                return at + 3;
            }
            _ => return at + 2,
        }
        at += 3;
    }
    paths.push(path);
    at
}

/// A shortest circle, if there is one.
fn circle(graph: &Graph) -> Option<Vec<Vec<String>>> {
    graph.keys().filter_map(|start| circle_through(graph, start)).min_by_key(Vec::len)
}

fn circle_through(graph: &Graph, start: &Vec<String>) -> Option<Vec<Vec<String>>> {
    let mut from: BTreeMap<&Vec<String>, &Vec<String>> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for next in &graph[at] {
            if next == start {
                let mut circle = vec![at.clone()];
                let mut back = at;
                while back != start {
                    back = from[back];
                    circle.push(back.clone());
                }
                circle.reverse();
                return Some(circle);
            }
            if !from.contains_key(next) {
                from.insert(next, at);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[(&str, &str)]) -> Option<String> {
        let texts = texts.iter().map(|(file, text)| (module(file), (*text).to_owned())).collect();
        circle(&graph(&texts).unwrap()).map(|c| c.iter().map(|m| m.join("::")).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn circles_are_found_whatever_way_a_path_is_written() {
        let plan = ("plan.rs", "use crate::{cost::{self, Work}, error::Error};");
        let cost = |text| [plan, ("cost.rs", text), ("error.rs", "pub enum Error {}"), ("gpu/mod.rs", "mod card;")];
        assert_eq!(found(&cost("pub struct Work;")), None);
        for text in ["use super::plan::Plan;", "fn f() { g(crate::plan::best()); }", "type P = Vec<crate::plan::Plan>;"]
        {
            assert_eq!(found(&cost(text)).as_deref(), Some("cost plan"), "{text}");
        }
    }

    #[test]
    fn tests_and_words_are_no_reason() {
        let cost = "//! crate::plan\n/// [`crate::plan`]\nfn f() -> &'static str { \"crate::plan::Plan\" }\n\
                    #[cfg(test)]\nmod tests { use crate::plan::Plan; }\nfn g() { bt_direct::plan::crate_of(); }";
        assert_eq!(found(&[("plan.rs", "use crate::cost::Work;"), ("cost.rs", cost)]), None);
    }

    #[test]
    fn the_module_above_one_in_braces_is_the_file() {
        let lanes = "mod x86 { use super::cast; use super::super::shape::Sizes; }";
        let all =
            |shape| [("batch/mod.rs", "use self::lanes::LANES;"), ("batch/lanes.rs", lanes), ("batch/shape.rs", shape)];
        assert_eq!(found(&all("")), None);
        assert_eq!(found(&all("use super::lanes::LANES;")).as_deref(), Some("batch::lanes batch::shape"));
    }

    #[test]
    fn a_circle_through_folders_is_told_by_its_modules() {
        let texts =
            [("gpu/mod.rs", "use super::plan::Plan;"), ("plan.rs", "use crate::gpu::card::Card;"), ("gpu/card.rs", "")];
        assert_eq!(found(&texts), None);
        let texts = [texts[0], texts[1], ("gpu/card.rs", "use super::facts;")];
        assert_eq!(found(&texts).as_deref(), Some("gpu plan gpu::card"));
    }
}
