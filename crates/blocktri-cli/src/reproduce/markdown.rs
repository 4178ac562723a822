//! The report as Markdown; figures are files beside it.

use std::fmt::Write as _;

use bt_reproduce::{Item, Origin, Table};

use super::{Edition, sessions};

/// The whole page.
pub fn page(edition: &Edition) -> String {
    let mut text = format!("# blocktri reproduce: {}\n\n{}\n\n", edition.title, edition.scope());
    // Writing to a String cannot fail.
    for (key, value) in edition.setting.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(text, "- {key}: {}", escape(&value));
    }
    for session in &edition.sessions {
        let _ = writeln!(text, "- {}", sessions::in_words(session));
    }
    for (origin, whose) in [(Origin::Paper, "papers"), (Origin::Ours, "our own")] {
        let _ = writeln!(text, "- claims of {whose}: {}", edition.tally_in_words(origin));
    }
    for part in &edition.parts {
        let _ = write!(text, "\n## {}\n\n{}\n\n{}\n", part.title, escape(&part.source), escape(&part.scope));
        for section in &part.sections {
            let _ = write!(text, "\n### {}\n", section.title);
            for item in &section.items {
                text.push('\n');
                match item {
                    Item::Text(paragraph) => {
                        let _ = writeln!(text, "{}", escape(paragraph));
                    }
                    Item::Figure(figure) => {
                        let _ = writeln!(text, "![{}]({}.svg)", escape(&figure.title), figure.name);
                    }
                    Item::Table(table) => table_of(table, &mut text),
                    Item::Claims(claims) => {
                        let mut table = Table::new("", ["", "claim", "paper", "here", "rule and reason"]);
                        for c in claims {
                            table.row([
                                format!("**{}**", c.label()),
                                c.what.clone(),
                                c.paper.clone(),
                                c.ours.clone(),
                                c.why.clone(),
                            ]);
                        }
                        table_of(&table, &mut text);
                    }
                }
            }
        }
    }
    text
}

fn table_of(table: &Table, text: &mut String) {
    if table.rows.is_empty() {
        let _ = writeln!(text, "{} No results yet.", escape(&table.caption));
        return;
    }
    let mut line = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|c| escape(c)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(&table.columns);
    line(&vec!["---".into(); table.columns.len()]);
    table.rows.iter().for_each(|row| line(row));
    if !table.caption.is_empty() {
        let _ = write!(text, "\n{}\n", escape(&table.caption));
    }
}

/// What would end a cell or open a tag.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
