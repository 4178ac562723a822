//! `blocktri reproduce`: runs published experiments and writes a folder with the report.
//!
//! results.json is written after every experiment, so that an interrupted run goes on where it was; results of another program,
//! machine, device, scale or number of threads are not taken over.
//!
//! | file | case |
//! |---|---|
//! | `html.rs` | the report as one page |
//! | `markdown.rs` | the report as Markdown, figures beside it |
//! | `sessions.rs` | when results were made, and how busy the machine was |

mod html;
mod markdown;
mod sessions;

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use blocktri::{CancelToken, DeviceChoice};
use bt_reproduce::{
    Claim, Error, Experiment, Gpu, Item, Origin, Report, Results, Scale, Verdict, experiments, processor, report,
};
use serde_json::{Value, json};

use crate::args::{Global, ReproduceArgs};
use crate::exit::{Exit, Failure, Reply, Result};
use crate::output::Output;
use crate::plot::{self, Ground};
use crate::progress::Line;
use crate::report::{Page, plural};
use sessions::Moment;

const RESULTS: &str = "results.json";
/// Of that file. 2: `runs` of five rounds, `sessions`, `origin` of claims.
const SCHEMA: u64 = 2;

/// A report, and what it was made by.
struct Edition {
    title: String,
    scale: Scale,
    setting: Value,
    parts: Vec<Report>,
    /// Runs of the command that made results.
    sessions: Vec<Value>,
    /// Experiments that have a result, of those there are.
    finished: (usize, usize),
}

/// Runs the command.
///
/// # Errors
/// When the GPU asked for is not there, when the folder cannot be written to, when `--only` selects nothing, and when interrupted.
pub fn run(args: &ReproduceArgs, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    let started = Instant::now();
    let scale = args.scale();
    let gpu = match args.device {
        DeviceChoice::Gpu(ordinal) => Some(Gpu::open(ordinal).map_err(|why| Failure::no_device(&why))?),
        DeviceChoice::Cpu | DeviceChoice::Auto | DeviceChoice::Gpus(_) => None,
    };
    let all: Vec<Experiment> =
        args.studies().into_iter().flat_map(|study| experiments(study, scale, gpu.as_ref())).collect();
    let wanted: Vec<_> = all.iter().filter(|e| args.selects(e.id())).collect();
    if wanted.is_empty() {
        let names = all.iter().map(Experiment::id).collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("no experiment has '{}' in its name", args.only.join("' or '")))
            .help(format!("experiments: {names}")));
    }
    let folder = args.folder();
    let mut device = gpu.as_ref().map(Gpu::name);
    let mut setting = setting(scale, device.as_deref());
    if args.render {
        setting = setting_of(&folder, &setting)?;
        device = setting["device"].as_str().filter(|d| *d != "cpu").map(str::to_owned);
    }
    fs::create_dir_all(&folder).map_err(|e| Failure::io(&folder, &e))?;
    let mut warnings = Vec::new();
    let (mut results, sessions) = if args.fresh { Default::default() } else { kept(&folder, &setting, &mut warnings) };
    if let Some(path) = &args.ranks {
        take_ranks(path, scale, &all, &mut results)?;
    }
    let missing: Vec<_> = wanted.into_iter().filter(|e| !args.render && !results.contains(e.id())).collect();

    let mut edition = Edition {
        title: format!("{}{}", args.name(), if args.quick { ", quick run" } else { "" }),
        scale,
        setting,
        parts: Vec::new(),
        sessions: sessions.clone(),
        finished: (0, all.len()),
    };
    let began = Moment::now();
    let update = |edition: &mut Edition, results: &Results| {
        edition.parts =
            args.studies().into_iter().map(|study| report(study, scale, device.as_deref(), results)).collect();
        edition.finished.0 = all.iter().filter(|e| results.contains(e.id())).count();
    };
    let line = Line::spinner(!global.quiet && !global.json, format!("reproduce {}", args.name()));
    let mut failed = Vec::new();
    for (done, experiment) in missing.iter().enumerate() {
        line.show(
            done as f64 / missing.len() as f64,
            format!("{} of {}: {}", done + 1, missing.len(), experiment.what()),
        );
        match experiment.run(cancel) {
            Ok(facts) => results.insert(experiment.id(), facts),
            Err(Error::Stopped) => {
                let count = plural(all.iter().filter(|e| results.contains(e.id())).count(), "finished experiment");
                return Err(Failure::interrupted_run(&format!(
                    "{count} of {} kept in {}",
                    all.len(),
                    folder.join(RESULTS).display()
                )));
            }
            Err(Error::Failed(why)) => {
                failed.push(experiment.id().to_owned());
                warnings.push(format!("{}: {why}", experiment.id()));
            }
        }
        edition.sessions = [&sessions[..], &[began.session(done + 1 - failed.len())]].concat();
        update(&mut edition, &results);
        write(&folder.join(RESULTS), &format!("{:#}\n", edition.to_json(&results)))?;
    }
    drop(line);
    update(&mut edition, &results);
    for figure in edition.parts.iter().flat_map(|p| &p.sections).flat_map(|s| &s.items) {
        if let Item::Figure(figure) = figure {
            write(&folder.join(format!("{}.svg", figure.name)), &plot::figure(figure, Ground::White))?;
        }
    }
    write(&folder.join("report.md"), &markdown::page(&edition))?;
    write(&folder.join("report.html"), &html::page(&edition))?;
    write(&folder.join(RESULTS), &format!("{:#}\n", edition.to_json(&results)))?;

    let mut json = edition.to_json(&results);
    if let Some(object) = json.as_object_mut() {
        object.remove("experiments");
        object.insert("folder".into(), folder.display().to_string().into());
        object.insert("ran".into(), (missing.len() - failed.len()).into());
        object.insert("failed".into(), json!(failed));
        object.insert("seconds".into(), started.elapsed().as_secs_f64().into());
    }
    Ok(Reply {
        exit: if failed.is_empty() { Exit::Done } else { Exit::NotConverged },
        json,
        text: edition.summary(&folder, missing.len() - failed.len(), started.elapsed().as_secs_f64()),
        warnings,
    })
}

fn write(path: &Path, text: &str) -> Result<()> {
    let mut output = Output::create(path)?;
    output.write(|w| w.write_all(text.as_bytes()))?;
    output.finish()
}

/// What results depend on beside the experiments themselves.
fn setting(scale: Scale, gpu: Option<&str>) -> Value {
    json!({
        "program": format!("blocktri {}", env!("CARGO_PKG_VERSION")),
        "build": build().unwrap_or_default(),
        "scale": scale.name(),
        "threads": rayon::current_num_threads(),
        "processor": processor(),
        "device": gpu.unwrap_or("cpu"),
        "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// Results over processes, of the same scale and version, in place of what there is.
fn take_ranks(path: &Path, scale: Scale, all: &[Experiment], results: &mut Results) -> Result<()> {
    let taken = Results::from_ranks_file(path, scale).map_err(|why| {
        Failure::usage(why.to_string())
            .detail("file", path.display().to_string())
            .help("blocktri-mpi reproduce parms -o FILE writes such files: run it with this version and scale")
    })?;
    for (id, facts) in taken.iter().filter(|(id, _)| all.iter().any(|e| e.id() == *id)) {
        results.insert(id, facts.clone());
    }
    Ok(())
}

/// A number that changes with the program.
fn build() -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&fs::read(std::env::current_exe()?)?);
    Ok(format!("{:016x}", hasher.finish()))
}

/// The setting that made the folder's results, which must be of this schema and scale.
fn setting_of(folder: &Path, setting: &Value) -> Result<Value> {
    let path = folder.join(RESULTS);
    let text = fs::read_to_string(&path).map_err(|e| Failure::io(&path, &e))?;
    let old: Value = serde_json::from_str(&text).map_err(|e| Failure::io(&path, &e))?;
    let wanted = [(&json!(SCHEMA), &old["schema"], "schema"), (&setting["scale"], &old["setting"]["scale"], "scale")];
    match wanted.into_iter().find(|(wanted, found, _)| wanted != found) {
        Some((wanted, found, what)) => Err(Failure::io(&path, &format!("its {what} is {found}, not {wanted}"))),
        None => Ok(old["setting"].clone()),
    }
}

/// Results of an earlier run of the same setting, and the sessions that made them.
fn kept(folder: &Path, setting: &Value, warnings: &mut Vec<String>) -> (Results, Vec<Value>) {
    let path: PathBuf = folder.join(RESULTS);
    let Ok(text) = fs::read_to_string(&path) else { return Default::default() };
    match serde_json::from_str::<Value>(&text) {
        Ok(old) if old["schema"] != SCHEMA => {
            warnings.push(format!(
                "{}: not taken over, its schema is {} and not {SCHEMA}: its times are of single runs",
                path.display(),
                old["schema"]
            ));
            Default::default()
        }
        Ok(old) if old["setting"] == *setting => {
            (Results::from_json(&old["experiments"]), old["sessions"].as_array().cloned().unwrap_or_default())
        }
        Ok(old) => {
            let differs = setting
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(key, value)| old["setting"][key.as_str()] != **value);
            let keys = differs.map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(", ");
            warnings.push(format!("{}: not taken over, made with other {keys}", path.display()));
            Default::default()
        }
        Err(why) => {
            warnings.push(format!("{}: not taken over: {why}", path.display()));
            Default::default()
        }
    }
}

/// 1 holds, 2 hold.
fn plural_label(verdict: Verdict, origin: Origin, count: usize) -> &'static str {
    match verdict.label(origin) {
        "holds" if count != 1 => "hold",
        "does not hold" if count != 1 => "do not hold",
        label => label,
    }
}

impl Edition {
    fn scope(&self) -> String {
        let kind = match self.scale {
            Scale::Quick => "Quick run",
            Scale::Full => "Full run",
        };
        let (done, all) = self.finished;
        let missing = if done < all {
            format!(" {} of {all} experiments have no result yet.", all - done)
        } else {
            String::new()
        };
        format!("{kind}.{missing}")
    }

    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.parts.iter().flat_map(Report::claims)
    }

    /// Claims of the papers, then those of our own, by verdict.
    fn tally(&self) -> Vec<(Origin, Verdict, usize)> {
        let pairs = [Origin::Paper, Origin::Ours].into_iter().flat_map(|o| Verdict::ALL.map(|v| (o, v)));
        pairs
            .map(|(o, v)| (o, v, self.claims().filter(|c| (c.origin, c.verdict) == (o, v)).count()))
            .filter(|&(_, _, count)| count > 0)
            .collect()
    }

    /// "12 reproduced, 3 not decided" of the claims of somebody.
    fn tally_in_words(&self, origin: Origin) -> String {
        let tally = self.tally();
        let own = tally.iter().filter(|(o, ..)| *o == origin);
        let words: Vec<_> = own.map(|(_, v, count)| format!("{count} {}", plural_label(*v, origin, *count))).collect();
        if words.is_empty() { "none".into() } else { words.join(", ") }
    }

    fn to_json(&self, results: &Results) -> Value {
        let claims = self.parts.iter().flat_map(|part| {
            part.claims().map(|c| {
                json!({
                    "study": part.title,
                    "what": c.what,
                    "origin": c.origin.name(),
                    "paper": c.paper,
                    "ours": c.ours,
                    "verdict": c.verdict.name(),
                    "why": c.why,
                })
            })
        });
        json!({
            "schema": SCHEMA,
            "setting": self.setting,
            "sessions": self.sessions,
            "finished": self.finished.0,
            "of": self.finished.1,
            "claims": claims.collect::<Vec<_>>(),
            "experiments": results.to_json(),
        })
    }

    fn summary(&self, folder: &Path, ran: usize, seconds: f64) -> String {
        let mut page = Page::new(format!("{}: {}", self.title, folder.join("report.html").display()));
        let (done, all) = self.finished;
        page.line("experiments", format_args!("{done} of {all} have results, {ran} run now in {seconds:.1} s"));
        page.line("claims of papers", self.tally_in_words(Origin::Paper));
        page.line("claims of our own", self.tally_in_words(Origin::Ours));
        for claim in self.claims().filter(|c| matches!(c.verdict, Verdict::NotReproduced | Verdict::NotDecided)) {
            let Claim { what, paper, ours, .. } = claim;
            page.line(claim.label(), format_args!("{what} (paper: {paper}; here: {ours})"));
        }
        page.finish()
    }
}
