//! Which supernodes are eliminated one after the other, and which side by side.
//!
//! Supernodes stand in postorder, each subtree of the elimination tree together. Whole subtrees of a small share of the work are tasks of
//! the first stage; above them a supernode follows in the task of the one supernode below it, and begins one of a later stage where
//! several meet. Tasks of a stage need nothing of each other (J. W. H. Liu, Parallel Comput. 3 (1986) 327–342,
//! doi:10.1016/0167-8191(86)90014-1). All of this is told from the structure, so that the bits of factors do not depend on threads.
//!
//! Storage: 4 bytes a supernode and 4 a row.

use std::ops::{Deref, Range};

use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;

use super::supernode::{Node, largest_node, node};

/// Supernodes, and which of them are eliminated side by side.
#[derive(Debug)]
pub(crate) struct Supernodes {
    structure: SymbolicSupernodalCholesky<u32>,
    /// The supernode of each row.
    pub of_rows: Vec<u32>,
    pub subtrees: Subtrees,
    /// Numbers of the largest block, and columns of the widest.
    pub largest: (usize, usize),
    /// The same of those that are eliminated beside others, and before.
    pub largest_beside: (usize, usize),
}

impl Supernodes {
    pub fn new(structure: SymbolicSupernodalCholesky<u32>) -> Self {
        let mut of_rows = vec![0u32; structure.nrows()];
        for k in 0..structure.n_supernodes() {
            let own = node(&structure, k);
            of_rows[own.begin..own.end].fill(k as u32);
        }
        let subtrees = Subtrees::of(&structure, &of_rows);
        let until = subtrees.stages.iter().rposition(|tasks| tasks.len() > 1).map_or(0, |last| last + 1);
        let beside = subtrees.stages[..until].iter().flatten().flat_map(|task| &task.nodes);
        let largest_beside = largest_node(&structure, beside.map(|&k| k as usize));
        let largest = largest_node(&structure, 0..structure.n_supernodes());
        Self { structure, of_rows, subtrees, largest, largest_beside }
    }
}

impl Deref for Supernodes {
    type Target = SymbolicSupernodalCholesky<u32>;
    fn deref(&self) -> &Self::Target {
        &self.structure
    }
}

/// Supernodes that are eliminated one after the other.
#[derive(Debug, Default)]
pub(crate) struct Task {
    /// These and all that they need.
    pub range: Range<usize>,
    pub nodes: Vec<u32>,
}

/// Tasks of each stage, in the order of their ranges, which have nothing in common.
#[derive(Debug)]
pub(crate) struct Subtrees {
    pub stages: Vec<Vec<Task>>,
}

/// Part of the work up to which subtrees are not divided, and from which they are not put together.
const SHARE: f64 = 1.0 / 16.0;
/// Work below which all of it is one task: threads cost more.
const LITTLE: f64 = 2e7;

/// Operations, and as many again as a number costs beside them where supernodes are narrow.
fn work(own: &Node<'_>) -> f64 {
    let (columns, rows) = (own.columns() as f64, own.rows() as f64);
    columns * rows * rows + 60.0 * columns * rows
}

impl Subtrees {
    fn of(s: &SymbolicSupernodalCholesky<u32>, of_rows: &[u32]) -> Self {
        let m = s.n_supernodes();
        let works: Vec<f64> = (0..m).map(|k| work(&node(s, k))).collect();
        let parent = |k: usize| node(s, k).below.first().map(|&row| of_rows[row as usize] as usize);
        Self::of_tree(works, parent, LITTLE)
    }

    fn of_tree(mut whole: Vec<f64>, parent: impl Fn(usize) -> Option<usize>, little: f64) -> Self {
        let m = whole.len();
        let all: f64 = whole.iter().sum();
        // Of each subtree its work, its first supernode and their number.
        let (mut first, mut size): (Vec<usize>, Vec<usize>) = ((0..m).collect(), vec![1; m]);
        for k in 0..m {
            if let Some(parent) = parent(k) {
                whole[parent] += whole[k];
                first[parent] = first[parent].min(first[k]);
                size[parent] += size[k];
            }
        }
        let in_postorder = (0..m).all(|k| first[k] + size[k] == k + 1);
        if all < little || !in_postorder {
            return Self { stages: vec![vec![Task { range: 0..m, nodes: (0..m as u32).collect() }]] };
        }
        let is_top = |k: usize| whole[k] > SHARE * all;
        let mut stages = vec![Vec::new()];
        let (mut begin, mut gathered) = (0, 0.0);
        let mut gather = |range: Range<usize>| {
            if !range.is_empty() {
                stages[0].push(Task { nodes: (range.start as u32..range.end as u32).collect(), range });
            }
        };
        for k in 0..m {
            if is_top(k) {
                gather(begin..k);
                (begin, gathered) = (k + 1, 0.0);
            } else if parent(k).is_none_or(is_top) {
                gathered += whole[k];
                if gathered > SHARE * all {
                    gather(begin..k + 1);
                    (begin, gathered) = (k + 1, 0.0);
                }
            }
        }
        gather(begin..m);
        // Stage and number of the tasks that meet in each supernode of the top.
        let mut meeting: Vec<Vec<(usize, usize)>> = vec![Vec::new(); m];
        for k in (0..m).filter(|&k| is_top(k)) {
            let own = match meeting[k][..] {
                [(stage, number)] => (stage, number),
                ref several => {
                    let stage = several.iter().map(|&(stage, _)| stage).max().unwrap_or(0) + 1;
                    if stage == stages.len() {
                        stages.push(Vec::new());
                    }
                    stages[stage].push(Task::default());
                    (stage, stages[stage].len() - 1)
                }
            };
            let task: &mut Task = &mut stages[own.0][own.1];
            task.range = first[k]..k + 1;
            task.nodes.push(k as u32);
            if let Some(parent) = parent(k) {
                meeting[parent].push(own);
            }
        }
        Self { stages }
    }

    /// How many of so many threads have something to do.
    pub fn threads(&self, threads: usize) -> usize {
        self.stages.iter().map(Vec::len).max().unwrap_or(1).clamp(1, threads.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SymbolicCholesky;
    use crate::sparse_cholesky::Structure;
    use bt_formats::Csr;

    /// A random tree in postorder, below supernode `parents.len()` − 1 and all under it.
    fn tree(parents: &mut Vec<Option<usize>>, depth: usize, seed: &mut u64) -> usize {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let children = if depth == 0 { 0 } else { (*seed >> 33) % 4 };
        let roots: Vec<usize> = (0..children).map(|_| tree(parents, depth - 1, seed)).collect();
        parents.push(None);
        let own = parents.len() - 1;
        for root in roots {
            parents[root] = Some(own);
        }
        own
    }

    #[test]
    fn each_supernode_comes_once_after_all_below_it_and_tasks_of_a_stage_have_nothing_in_common() {
        let mut several = 0;
        for mut seed in 0..200u64 {
            let mut parents = Vec::new();
            // Two trees.
            (0..2).for_each(|_| _ = tree(&mut parents, 7, &mut seed));
            let m = parents.len();
            let works = (0..m).map(|k| ((7 * k + 3) % 11) as f64).collect();
            let stages = Subtrees::of_tree(works, |k| parents[k], 0.0).stages;
            // Stage, task and place in it.
            let mut when = vec![None; m];
            for (stage, tasks) in stages.iter().enumerate() {
                assert!(tasks.windows(2).all(|t| t[0].range.end <= t[1].range.start), "ranges {tasks:?}");
                for (number, task) in tasks.iter().enumerate() {
                    for (place, &k) in task.nodes.iter().enumerate() {
                        assert!(task.range.contains(&(k as usize)));
                        assert_eq!(when[k as usize].replace((stage, number, place)), None, "{k} comes twice");
                    }
                }
            }
            for k in 0..m {
                let own = when[k].expect("each comes");
                if let Some(parent) = parents[k] {
                    let later = when[parent].expect("each comes");
                    let same_task = (own.0, own.1) == (later.0, later.1);
                    assert!(
                        if same_task { own.2 < later.2 } else { own.0 < later.0 },
                        "{k} after {parent}: {stages:?}"
                    );
                    let range = &stages[later.0][later.1].range;
                    assert!(range.contains(&k) || later.0 == 0, "{k} is needed by {parent}");
                }
            }
            several += usize::from(stages.len() > 2);
        }
        assert!(several > 50, "{several} trees have more than two stages");
    }

    #[test]
    fn grids_have_tasks_for_threads_and_bands_one_after_the_other() {
        let stages = |a: &Csr<f64>| -> Vec<usize> {
            let symbolic = SymbolicCholesky::new(a).unwrap();
            let Ok(Structure::Supernodal(s)) = symbolic.structure() else { panic!("supernodes") };
            s.subtrees.stages.iter().map(Vec::len).collect()
        };
        let grid = stages(&bt_testkit::grid([150, 150, 1]));
        assert!(grid[0] >= 4 && grid.iter().sum::<usize>() > grid[0], "{grid:?}");
        assert!(stages(&bt_testkit::grid([60, 60, 1])).iter().sum::<usize>() <= 1, "little work is one task");
    }
}
