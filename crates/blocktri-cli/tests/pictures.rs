//! Pictures from the outside: what stands on them, whatever the numbers are.

mod common;

use common::Sandbox;

/// Marks of the axes: texts in the secondary colour, those below the frame in the middle of their places.
fn marks(svg: &str, anchor: &str) -> Vec<String> {
    let marked = format!("text-anchor=\"{anchor}\" fill=\"#5f6b7a\">");
    let texts = svg.split(&marked).skip(1).filter_map(|rest| rest.split("</text>").next());
    texts.map(|text| text.replace("<tspan", "^<tspan")).collect()
}

fn bars(svg: &str) -> usize {
    svg.split("<path").find(|path| path.contains("fill-opacity")).map_or(0, |path| path.matches('z').count())
}

#[test]
fn a_chain_with_one_recurrent_state_is_a_bar() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    // From state 0 to state 1, and never back.
    let chain = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 -1\n1 2 1\n";
    sandbox.write("folder/absorbed.mtx", chain);
    sandbox.run("queue --generator folder/absorbed.mtx --plot pi.svg").expect(0);
    let svg = sandbox.read("pi.svg");
    assert_eq!(bars(&svg), 1, "{svg}");
    assert_eq!(marks(&svg, "middle"), ["0", "1", "2"]);
    assert!(marks(&svg, "end").len() >= 3, "{svg}");
    assert!(svg.contains("π of absorbed.mtx") && !svg.contains("folder"), "{svg}");
    assert!(svg.contains(">probability<") && svg.contains(">state (from 0)<"));
}

#[cfg(feature = "png")]
#[test]
fn names_that_end_in_png_make_pixels() {
    let sandbox = Sandbox::new();
    sandbox.run("queue --resources 3 --threshold 2 --lambda 1 --plot pi.png").expect(0);
    sandbox.run("generate poisson2d --nx 6 -o A.mtx").expect(0);
    sandbox.run("info A.mtx --spy A.PNG").expect(0);
    for name in ["pi.png", "A.PNG"] {
        assert_eq!(&std::fs::read(sandbox.path(name)).unwrap()[..8], b"\x89PNG\r\n\x1a\n", "{name}");
    }
}

#[cfg(not(feature = "png"))]
#[test]
fn a_build_without_png_says_so_and_writes_nothing() {
    let sandbox = Sandbox::new();
    let run = sandbox.run("queue --resources 3 --threshold 2 --lambda 1 --plot pi.png").expect(2);
    assert!(run.stderr.contains("pi.png: this build writes pictures as .svg only"), "{}", run.stderr);
    assert!(sandbox.names().is_empty(), "{:?}", sandbox.names());
}

#[test]
fn a_distribution_is_shown_where_it_is() {
    let sandbox = Sandbox::new();
    sandbox.run("queue --resources 40 --threshold 16 --lambda 10 --plot pi.svg").expect(0);
    let svg = sandbox.read("pi.svg");
    // All 657 numbers of tasks would hide the two hundred that matter.
    assert!((100..300).contains(&bars(&svg)), "{}", bars(&svg));
    assert!(svg.contains("of 0 to 656, all but 1e-12 of the probability"), "{svg}");
    assert!(svg.contains(">probability, logarithmic<") && svg.contains(">tasks<"));
    assert!(marks(&svg, "middle").len() >= 3 && marks(&svg, "middle").iter().all(|m| m.parse::<usize>().is_ok()));
    let powers = marks(&svg, "end");
    assert!(powers.len() >= 3 && powers.iter().all(|m| m.starts_with("10^")), "{powers:?}");
}

#[test]
fn plans_have_units_and_lines_that_differ_without_colours() {
    let sandbox = Sandbox::new();
    let sweep = "queue --resources 20 --threshold 4 --lambda 1 --time-unit hour --sweep lambda=2:10:1";
    sandbox.run(&format!("{sweep} --plot plan.svg")).expect(0);
    let svg = sandbox.read("plan.svg");
    assert!(svg.contains(">λ, tasks that arrive per hour<") && svg.contains(">resources<"), "{svg}");
    for dashes in ["8 4", "2 3"] {
        assert_eq!(svg.matches(&format!("stroke-dasharray=\"{dashes}\"")).count(), 2, "{svg}");
    }
    assert!(marks(&svg, "middle").len() >= 3 && marks(&svg, "end").len() >= 3, "{svg}");
}

#[test]
fn a_history_names_the_file_without_its_folder() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.run("generate poisson2d --nx 6 -o folder/p.mtx").expect(0);
    sandbox.run("solve folder/p.mtx --method cg --plot r.svg").expect(0);
    let svg = sandbox.read("r.svg");
    assert!(svg.contains("cg on p.mtx") && !svg.contains("folder"), "{svg}");
    assert!(svg.contains("relative residual, logarithmic") && svg.contains(">iteration<"), "{svg}");
    assert!(marks(&svg, "middle").len() >= 3 && marks(&svg, "end").len() >= 3, "{svg}");
}
