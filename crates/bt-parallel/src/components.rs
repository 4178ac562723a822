//! What site expansion grows in a graph that may not be connected: pieces of its components, dealt to p domains.
//!
//! Components are taken from the heaviest on. One of weight w ≥ n/p has ⌊w·p/n⌋ domains to itself, as long as they need not
//! exceed their share by more than the slack; else one more where light components can fill what is missing; else what remains of
//! it is a piece beside others. Lighter ones go whole to the domain with most room, and are cut where that is not enough.
//! Components no heavier than the slack, rows that nothing is coupled to among them, come last, each to the domain that has
//! least: they make up for what growing missed. A connected graph has p pieces, one a domain.
//!
//! Cost: O(nnz + c·log c) for c components; storage O(n + p).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bt_formats::Scalar;

use crate::site_expansion::Graph;

/// Rows that one domain grows in one component.
pub(crate) struct Piece {
    pub component: usize,
    pub domain: u32,
    /// In proportion to those of other pieces of the component: what it should have of it.
    pub share: u64,
    /// Rows of the system, at most.
    pub limit: usize,
    quota: i64,
}

/// A connected part of a graph.
pub(crate) struct Component {
    /// Rows of the graph, the lowest first.
    pub rows: Vec<u32>,
    /// Rows of the system.
    weight: i64,
}

/// Components and what becomes of each.
pub(crate) struct Dealt {
    pub components: Vec<Component>,
    /// Those of a component one after the other.
    pub pieces: Vec<Piece>,
    /// Components that nobody grows in, the heaviest first.
    pub light: Vec<usize>,
}

impl Dealt {
    /// Among p domains that may exceed the mean by the part `excess` of it.
    pub fn new<T: Scalar>(graph: &Graph<'_, T>, p: usize, excess: f64) -> Self {
        let components = components(graph);
        let total: i64 = components.iter().map(|c| c.weight).sum();
        let slack = (excess * total as f64 / p as f64) as i64;
        let is_light = |&c: &usize| components.len() > 1 && components[c].weight <= slack.max(1);
        let mut order: Vec<usize> = (0..components.len()).collect();
        order.sort_by_key(|&c| Reverse(components[c].weight));
        let (light, heavy): (Vec<usize>, Vec<usize>) = order.into_iter().partition(is_light);
        let mut table = Table {
            slack,
            rooms: (0..p).map(|d| (total / p as i64 + i64::from((d as i64) < total % p as i64), Reverse(d))).collect(),
            filling: light.iter().map(|&c| components[c].weight).sum(),
            pieces: Vec::new(),
        };
        // A component without domains of its own, or what remains of one with some.
        let mut rest: Vec<(i64, usize)> = Vec::new();
        for c in heavy {
            let weight = components[c].weight;
            let left = table.own_domains(c, weight, (weight * p as i64 / total) as usize);
            if left > 0 {
                rest.push((left, c));
            }
        }
        rest.sort_by_key(|&(weight, _)| Reverse(weight));
        for (weight, c) in rest {
            table.beside_others(c, weight);
        }
        let mut pieces = table.pieces;
        let mut loads = vec![0; p];
        for piece in &pieces {
            loads[piece.domain as usize] += piece.quota;
        }
        let most = (total as usize).div_ceil(p) + slack as usize;
        for piece in &mut pieces {
            piece.limit = (most as u64 * piece.quota as u64 / loads[piece.domain as usize].max(1) as u64) as usize;
        }
        pieces.sort_by_key(|piece| piece.component);
        Self { components, pieces, light }
    }

    /// Rows of the system by which pieces exceed their limits; those of a connected graph are judged by their cut alone.
    pub fn excess<T: Scalar>(&self, graph: &Graph<'_, T>, piece: &[u32]) -> usize {
        if self.components.len() == 1 {
            return 0;
        }
        let mut sizes = vec![0usize; self.pieces.len()];
        for (i, &k) in piece.iter().enumerate() {
            if let Some(size) = sizes.get_mut(k as usize) {
                *size += graph.weight(i);
            }
        }
        sizes.iter().zip(&self.pieces).map(|(size, piece)| size.saturating_sub(piece.limit)).sum()
    }

    /// The domain of each row, from the piece of each; light components to the domains that have least.
    pub fn domains<T: Scalar>(&self, graph: &Graph<'_, T>, piece: &[u32], p: usize) -> Vec<u32> {
        let mut owner = vec![0; piece.len()];
        let mut sizes = vec![0usize; p];
        for (i, &k) in piece.iter().enumerate() {
            if let Some(piece) = self.pieces.get(k as usize) {
                owner[i] = piece.domain;
                sizes[piece.domain as usize] += graph.weight(i);
            }
        }
        let mut least: BinaryHeap<Reverse<(usize, u32)>> = sizes.into_iter().zip(0..).map(Reverse).collect();
        for &c in &self.light {
            let Some(Reverse((size, domain))) = least.pop() else { break };
            let Component { rows, weight } = &self.components[c];
            for &i in rows {
                owner[i as usize] = domain;
            }
            least.push(Reverse((size + *weight as usize, domain)));
        }
        owner
    }
}

/// Domains while pieces are dealt to them.
struct Table {
    /// Rows by which a domain may exceed its share.
    slack: i64,
    /// What each domain lacks, the lowest first among equals.
    rooms: BinaryHeap<(i64, Reverse<usize>)>,
    /// Rows of light components that nothing counts on.
    filling: i64,
    pieces: Vec<Piece>,
}

impl Table {
    fn put(&mut self, component: usize, (room, domain): (i64, Reverse<usize>), quota: i64, share: i64) {
        let piece = Piece { component, domain: domain.0 as u32, share: share as u64, limit: 0, quota };
        self.pieces.push(piece);
        self.rooms.push((room - quota, domain));
    }

    /// Gives a component the q domains with most room, or one more; what remains.
    fn own_domains(&mut self, component: usize, weight: i64, q: usize) -> i64 {
        let mut taken: Vec<_> = (0..q).filter_map(|_| self.rooms.pop()).collect();
        let Some(&(most, _)) = taken.first() else { return weight };
        let room: i64 = taken.iter().map(|t| t.0).sum();
        // Equal pieces need equal rooms.
        let equal = |last: Option<&(i64, Reverse<usize>)>| last.is_some_and(|&(room, _)| most - room <= 1);
        let enough = weight <= room + q as i64 * self.slack && equal(taken.last());
        let missing = self.rooms.peek().map_or(0, |next| room + next.0 - weight);
        if !enough && (0..=self.filling).contains(&missing) && equal(self.rooms.peek()) {
            self.filling -= missing;
            taken.extend(self.rooms.pop());
        } else if !enough {
            for (room, domain) in taken {
                self.put(component, (room, domain), room, room);
            }
            return weight - room;
        }
        let q = taken.len() as i64;
        for (k, taken) in (0..).zip(taken) {
            self.put(component, taken, weight / q + i64::from(k < weight % q), 1);
        }
        0
    }

    /// A component, or what remains of it, to the domain with most room, and what is too much to the next one.
    fn beside_others(&mut self, component: usize, mut weight: i64) {
        while let Some((room, domain)) = self.rooms.pop() {
            // Together they have room for all, so that the one with most has some.
            let quota = if weight <= room + self.slack || room <= 0 { weight } else { room };
            self.put(component, (room, domain), quota, quota);
            weight -= quota;
            if weight == 0 {
                break;
            }
        }
    }
}

/// By their lowest rows.
fn components<T: Scalar>(graph: &Graph<'_, T>) -> Vec<Component> {
    let n = graph.n();
    let (mut seen, mut found) = (vec![false; n], Vec::new());
    for start in 0..n {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let (mut rows, mut weight, mut next) = (vec![start as u32], 0, 0);
        while let Some(&i) = rows.get(next) {
            weight += graph.weight(i as usize) as i64;
            for (j, _) in graph.neighbours(i as usize) {
                if !std::mem::replace(&mut seen[j], true) {
                    rows.push(j as u32);
                }
            }
            next += 1;
        }
        found.push(Component { rows, weight });
    }
    found
}
