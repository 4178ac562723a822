//! The report as one page: no script, nothing loaded, figures inside; light or dark as the reader's system is.

use std::fmt::Write as _;

use bt_reproduce::{Claim, Item, Origin, Table, Verdict};

use super::{Edition, plural_label, sessions};
use crate::plot::{self, Ground, escape};

/// Colours of the page and, by [`Ground::Page`], of its figures.
const STYLE: &str = "\
:root{color-scheme:light dark;--ground:#fff;--card:#f6f8fa;--ink:#1f2933;--grey:#56616f;--faint:#e4e8ee;--line:#9aa5b1;\
--blue:#1f5fa8;--red:#c4432b;--green:#3f7230;--violet:#7b4fa3;--ochre:#8f5a0a;--teal:#13737a}
@media(prefers-color-scheme:dark){:root{--ground:#14181d;--card:#1d2329;--ink:#e4e8ec;--grey:#a3adb8;--faint:#2c343c;\
--line:#5c6873;--blue:#7db4f0;--red:#f08a74;--green:#93c67f;--violet:#c3a0e6;--ochre:#e0b060;--teal:#62c5cc}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,Ubuntu,Helvetica,Arial,sans-serif;\
overflow-wrap:anywhere}
main{max-width:62rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;line-height:1.2}h2{margin-top:3rem;border-top:1px solid var(--faint);padding-top:1.5rem}h3{margin-top:2rem}
a{color:var(--blue)}
.source,.meta,.caption{color:var(--grey);font-size:.9rem}
.tally{display:flex;flex-wrap:wrap;gap:.5rem;padding:0;list-style:none}
.tally li,.badge{border:1px solid currentColor;border-radius:1rem;padding:.1rem .7rem;font-size:.85rem;white-space:nowrap}
.yes{color:var(--green)}.no{color:var(--red)}.open{color:var(--ochre)}.other{color:var(--grey)}
.tally .whose{border:0;padding-left:0;color:var(--grey);flex-basis:100%}
.claim{background:var(--card);border-radius:.5rem;padding:.8rem 1rem;margin:.7rem 0;border-left:.3rem solid var(--line)}
.claim.yes-edge{border-left-color:var(--green)}.claim.no-edge{border-left-color:var(--red)}.claim.open-edge{border-left-color:var(--ochre)}
.claim p{margin:.4rem 0}.claim .what{font-weight:600}
.claim dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.4rem 0}.claim dt{color:var(--grey)}\
.claim dd{margin:0}
.claim .why{color:var(--grey);font-size:.9rem}
.wide{overflow-x:auto;max-width:100%;margin:1rem 0;border-right:1px solid var(--faint)}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
.caption{margin:1.5rem 0 -.5rem}
th,td{padding:.3rem .7rem;border-bottom:1px solid var(--faint);text-align:right;white-space:nowrap;overflow-wrap:normal}
th{color:var(--grey);font-weight:600;vertical-align:bottom;white-space:normal;min-width:4.5rem}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--ground)}
figure{margin:1.5rem 0;max-width:38rem}
figure svg{display:block;width:100%;height:auto}
";

/// The whole page.
pub fn page(edition: &Edition) -> String {
    let title = escape(&format!("blocktri reproduce: {}", edition.title));
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{}</p>\n<ul class=\"tally\">\n",
        escape(&edition.scope())
    );
    // Writing to a String cannot fail.
    for origin in [Origin::Paper, Origin::Ours] {
        let whose = if origin == Origin::Paper { "claims of papers" } else { "our own" };
        let _ = writeln!(text, "<li class=\"whose\">{whose}</li>");
        for (_, verdict, count) in edition.tally().into_iter().filter(|(o, ..)| *o == origin) {
            let _ = writeln!(
                text,
                "<li class=\"{}\">{count} {}</li>",
                class(verdict),
                plural_label(verdict, origin, count)
            );
        }
    }
    text.push_str("</ul>\n");
    for session in &edition.sessions {
        let _ = writeln!(text, "<p class=\"meta\">{}</p>", escape(&sessions::in_words(session)));
    }
    text.push_str("<p class=\"meta\">");
    let setting = edition.setting.as_object().into_iter().flatten().map(|(key, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}: {}", escape(key), escape(&value))
    });
    text.push_str(&setting.collect::<Vec<_>>().join(" · "));
    text.push_str("</p>\n");
    if edition.parts.len() > 1 {
        text.push_str("<nav><ul>\n");
        for (k, part) in edition.parts.iter().enumerate() {
            let _ = writeln!(text, "<li><a href=\"#part-{k}\">{}</a></li>", escape(&part.title));
        }
        text.push_str("</ul></nav>\n");
    }
    for (k, part) in edition.parts.iter().enumerate() {
        let [title, source, scope] = [&part.title, &part.source, &part.scope].map(|s| escape(s));
        let _ = writeln!(text, "<h2 id=\"part-{k}\">{title}</h2>\n<p class=\"source\">{source}</p>\n<p>{scope}</p>");
        for section in &part.sections {
            let _ = writeln!(text, "<h3>{}</h3>", escape(&section.title));
            for item in &section.items {
                match item {
                    Item::Text(paragraph) => {
                        let _ = writeln!(text, "<p>{}</p>", escape(paragraph));
                    }
                    Item::Claims(claims) => claims.iter().for_each(|c| claim(c, &mut text)),
                    Item::Table(t) => table(t, &mut text),
                    Item::Figure(figure) => {
                        let _ = write!(text, "<figure>\n{}</figure>\n", plot::figure(figure, Ground::Page));
                    }
                }
            }
        }
    }
    text.push_str("</main>\n</body>\n</html>\n");
    text
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "yes",
        Verdict::NotReproduced => "no",
        Verdict::NotDecided => "open",
        Verdict::NotComparable | Verdict::NotRun => "other",
    }
}

fn claim(claim: &Claim, text: &mut String) {
    let class = class(claim.verdict);
    let [what, paper, ours, why] = [&claim.what, &claim.paper, &claim.ours, &claim.why].map(|s| escape(s));
    let _ = writeln!(
        text,
        "<div class=\"claim {class}-edge\"><span class=\"badge {class}\">{}</span>\n<p class=\"what\">{what}</p>\n\
         <dl><dt>paper</dt><dd>{paper}</dd><dt>here</dt><dd>{ours}</dd></dl>\n<p class=\"why\">{why}</p></div>",
        claim.label()
    );
}

fn table(table: &Table, text: &mut String) {
    if table.rows.is_empty() {
        let _ = writeln!(text, "<p class=\"caption\">{} No results yet.</p>", escape(&table.caption));
        return;
    }
    let _ = writeln!(
        text,
        "<p class=\"caption\">{}</p>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"table, scrolls\"><table>\n<thead><tr>",
        escape(&table.caption)
    );
    let cells = |tag: &str, cells: &[String]| {
        cells.iter().map(|c| format!("<{tag}>{}</{tag}>", escape(c))).collect::<Vec<_>>().concat()
    };
    let _ = writeln!(text, "{}</tr></thead>\n<tbody>", cells("th", &table.columns));
    for row in &table.rows {
        let _ = writeln!(text, "<tr>{}</tr>", cells("td", row));
    }
    text.push_str("</tbody></table></div>\n");
}
