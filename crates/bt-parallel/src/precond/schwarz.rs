//! Additive Schwarz: the rows of each rank grown by δ layers of neighbours, and a local solver on each; δ = 0 is block Jacobi.
//!
//! ```text
//! additive     M⁻¹ = Σ Rᵢᵀ·Mᵢ⁻¹·Rᵢ       Hermitian where the Mᵢ are
//! restricted   M⁻¹ = Σ R̃ᵢᵀ·Mᵢ⁻¹·Rᵢ       R̃ᵢ keeps the rows of the rank itself
//! ```
//!
//! with Mᵢ ≈ Rᵢ·A·Rᵢᵀ, as [`bt_iter::Schwarz`] with one part a rank: local matrices have the rows in the order of their numbers
//! in the system, and neighbours are those in A + Aᵀ, and each is given to its solver in a unit of its own, a power of two. M.
//! Dryja, O. B. Widlund, Tech. Rep. 339, Courant Institute, 1987; restricted: X.-C. Cai, M. Sarkis, SIAM J. Sci. Comput. 21
//! (1999) 792–797, doi:10.1137/S106482759732678X.
//!
//! Counted, an application on a rank: nothing for δ = 0; else one exchange of a halo of the rows taken in, and for the additive form
//! another one back. Making it takes, for each layer, the questions of [`Rows::owners`](crate::Rows::owners) and the rows taken in. Flops:
//! those of the local solver.

use std::collections::HashSet;

use bt_formats::{Csr, zero};
use bt_iter::{Overlap, Preconditioner, PreconditionerKind, scale_of_rows};

use super::{DistributedPreconditioner, check_lengths};
use crate::comm::{Comm, Number};
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result, agree};
use crate::fetch::{FullRow, Transposed, fetch};
use crate::halo::Halo;

/// The preconditioner.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::Overlap;
/// use bt_parallel::{DistributedCsr, DistributedPreconditioner, Division, LocalSolver, Schwarz, thread_comm};
/// // Two parts that nothing connects, each solved exactly: M = A.
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 4.0]].as_ref())?;
/// let solved = thread_comm::run(2, |comm| {
///     let a = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(3, 2))?;
///     let mut m = Schwarz::new(&a, 1, Overlap::Restricted, |local| LocalSolver::SparseLu.of(local))?;
///     let mut z = a.own_entries(&[0.0; 3]);
///     m.apply(&a.own_entries(&[3.0, 3.0, 4.0]), &mut z)?;
///     a.whole(&z)
/// });
/// assert!(solved[0].as_ref().unwrap().iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_formats::Error>(())
/// ```
pub struct Schwarz<'c, T: Number, C: Comm> {
    comm: &'c C,
    overlap: Overlap,
    layers: usize,
    /// Of the local matrix in its own unit.
    solver: Box<dyn Preconditioner<T>>,
    /// 1 / that unit.
    scale: T,
    kind: PreconditionerKind,
    /// The rows taken in from others.
    halo: Halo<T>,
    /// For each row of the local matrix its place among the own rows and then the halo.
    places: Vec<u32>,
    /// Whether they are those of the own rows, in order: r and z need no copies.
    in_place: bool,
    /// r and z of the own rows and the halo, and of the local matrix.
    extended: Vec<T>,
    r: Vec<T>,
    z: Vec<T>,
    m: usize,
}

impl<'c, T: Number, C: Comm> Schwarz<'c, T, C> {
    /// With δ = `layers` and a solver for the local matrix, which is empty on a rank without rows. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] with the first rank whose solver cannot be made, and why; those of the communicator.
    ///
    /// # Cost
    /// The local setup and the rows taken in.
    pub fn new(
        a: &DistributedCsr<'c, T, C>,
        layers: usize,
        overlap: Overlap,
        solver: impl FnOnce(&Csr<T>) -> bt_direct::Result<Box<dyn Preconditioner<T>>>,
    ) -> Result<Self> {
        let comm = a.comm();
        // The same on all ranks: growing is a collective.
        let mut scattered = [f64::from(u8::from(layers > 0 || !a.rows().own().is_sorted()))];
        comm.all_max(&mut scattered)?;
        let in_place = scattered[0] == 0.0;
        let subdomain = if in_place { own(a)? } else { grown(a, layers)? };
        let Subdomain { halo, by_number, local, scale } = subdomain;
        let places: Vec<u32> = by_number.iter().map(|e| e.1).collect();
        let made = local.and_then(|local| {
            let numbers = by_number.iter().map(|e| e.0);
            let solver = solver(&local).map_err(|error| Fault::in_part(error, "subdomain", numbers))?;
            if solver.n() == places.len() {
                Ok(solver)
            } else {
                Err(Fault::input(format!("{} is for {} rows, not {}", solver.name(), solver.n(), places.len())))
            }
        });
        let solver = agree(comm, made)?;
        let kind = common_kind(comm, solver.kind(), overlap)?;
        let vector = |n| vec![zero::<T>(); n];
        let m = a.rows().own().len();
        let copied = if in_place { 0 } else { places.len() };
        Ok(Self {
            comm,
            overlap,
            layers,
            solver,
            scale,
            kind,
            halo,
            places,
            in_place,
            extended: vector(copied),
            r: vector(copied),
            z: vector(copied),
            m,
        })
    }

    /// Rows of the local matrix, those taken in included.
    pub fn local_rows(&self) -> usize {
        self.places.len()
    }

    /// What an application exchanges.
    pub fn halo(&self) -> &Halo<T> {
        &self.halo
    }
}

/// What all ranks may assume.
fn common_kind(comm: &impl Comm, own: PreconditionerKind, overlap: Overlap) -> Result<PreconditionerKind> {
    let mut kind = [match own {
        PreconditionerKind::Variable => 2.0,
        PreconditionerKind::Spd | PreconditionerKind::Identity => 0.0,
        PreconditionerKind::General => 1.0,
    }];
    comm.all_max(&mut kind)?;
    Ok(match kind[0] {
        2.0 => PreconditionerKind::Variable,
        0.0 if overlap == Overlap::Added => PreconditionerKind::Spd,
        _ => PreconditionerKind::General,
    })
}

/// The rows of a rank, grown, and its matrix in its own unit.
struct Subdomain<T: Number> {
    /// Of the rows taken in.
    halo: Halo<T>,
    /// Numbers in the system, increasing, and places among the own rows and then the halo.
    by_number: Vec<(u32, u32)>,
    local: Result<Csr<T>, Fault>,
    /// 1 / the unit.
    scale: T,
}

/// The own rows, which increase: A₀ as it is.
fn own<T: Number, C: Comm>(a: &DistributedCsr<'_, T, C>) -> Result<Subdomain<T>> {
    let (a0, rows) = (a.local(), a.rows().own());
    let scale = scale_of_rows(own_values(a));
    let values = a0.values().iter().map(|&v| v * scale).collect();
    let local = Csr::new(rows.len(), rows.len(), a0.row_ptr().to_vec(), a0.col_idx().to_vec(), values);
    Ok(Subdomain {
        halo: Halo::new(a.comm(), a.rows(), &[])?,
        by_number: rows.iter().copied().zip(0..).collect(),
        local: local.map_err(Fault::from),
        scale,
    })
}

/// The own rows and those at most `layers` edges away.
fn grown<T: Number, C: Comm>(a: &DistributedCsr<'_, T, C>, layers: usize) -> Result<Subdomain<T>> {
    let own = a.rows().own();
    let mut known: HashSet<u32> = HashSet::new();
    let mut increasing = own.to_vec();
    increasing.sort_unstable();
    let mut is_new = |g: &u32| increasing.binary_search(g).is_err() && known.insert(*g);
    let mut taken: Vec<(u32, FullRow<T>)> = Vec::new();
    if layers > 0 {
        let transposed = Transposed::new(a)?;
        // Neighbours of the own rows: the columns of the halo, and rows of others that have an own row as a column.
        let mut next: Vec<u32> =
            a.halo().rows().iter().copied().chain(transposed.others()).filter(&mut is_new).collect();
        // All ranks take as many turns: each answers for the rows of the others.
        for layer in 1..=layers {
            let owners = a.rows().owners(a.comm(), &next)?;
            let found = fetch(a, &transposed, &owners)?;
            let first = taken.len();
            taken.extend(next.drain(..).zip(found));
            if layer < layers {
                let neighbours =
                    taken[first..].iter().flat_map(|(_, row)| row.cols.iter().chain(&row.named_by).copied());
                next.extend(neighbours.filter(&mut is_new));
            }
        }
    }
    let halo = Halo::new(a.comm(), a.rows(), &taken.iter().map(|row| row.0).collect::<Vec<_>>())?;
    // By place: own rows, then the halo.
    let mut by_number: Vec<(u32, u32)> = own.iter().chain(halo.rows()).copied().zip(0u32..).collect();
    by_number.sort_unstable();
    let whole = taken.iter().map(|(_, row)| &row.values[..]);
    let scale = scale_of_rows(own_values(a).chain(whole));
    let local = local_matrix(a, taken, &by_number, scale);
    Ok(Subdomain { halo, by_number, local, scale })
}

/// The numbers of the own rows, in pieces.
fn own_values<'a, T: Number, C: Comm>(a: &'a DistributedCsr<'_, T, C>) -> impl Iterator<Item = &'a [T]> {
    let (local, external) = (a.local(), &a.external);
    (0..a.rows().own().len()).map(|i| local.row(i).1).chain((0..a.boundary.len()).map(|k| external.row(k).1))
}

/// scale·A in the rows and columns of `by_number`, the own rows of `a` and those taken in.
fn local_matrix<T: Number, C: Comm>(
    a: &DistributedCsr<'_, T, C>,
    mut taken: Vec<(u32, FullRow<T>)>,
    by_number: &[(u32, u32)],
    scale: T,
) -> Result<Csr<T>, Fault> {
    let (n, m) = (by_number.len(), a.rows().own().len());
    // Columns of the local matrix: of own rows by place, of the halo of a product by number, where they are there.
    let mut column = vec![0u32; m];
    by_number.iter().zip(0u32..).filter(|(e, _)| (e.1 as usize) < m).for_each(|(e, k)| column[e.1 as usize] = k);
    let of_number = |g: &u32| by_number.binary_search_by_key(g, |e| e.0).ok().map(|k| k as u32);
    let of_halo: Vec<Option<u32>> = a.halo().rows().iter().map(of_number).collect();
    taken.sort_unstable_by_key(|row| row.0);
    let mut taken = taken.into_iter();
    let entries = a.local().values().len() + a.external.values().len();
    let (mut ptr, mut cols, mut values) = (vec![0u32], Vec::with_capacity(entries), Vec::with_capacity(entries));
    let mut line: Vec<(u32, T)> = Vec::new();
    for &(_, place) in by_number {
        line.clear();
        if (place as usize) < m {
            let of_place = |j: u32| if (j as usize) < m { Some(column[j as usize]) } else { of_halo[j as usize - m] };
            line.extend(a.row(place as usize).filter_map(|(j, v)| Some((of_place(j)?, v * scale))));
        } else {
            let (_, row) = taken.next().expect("a row for each place beyond the own ones");
            line.extend(row.cols.iter().zip(&row.values).filter_map(|(g, &v)| Some((of_number(g)?, v * scale))));
        }
        if !line.is_sorted_by_key(|e| e.0) {
            line.sort_unstable_by_key(|e| e.0);
        }
        cols.extend(line.iter().map(|e| e.0));
        values.extend(line.iter().map(|e| e.1));
        ptr.push(cols.len() as u32);
    }
    Ok(Csr::new(n, n, ptr, cols, values)?)
}

impl<T: Number, C: Comm> DistributedPreconditioner<T> for Schwarz<'_, T, C> {
    fn rows(&self) -> usize {
        self.m
    }
    fn name(&self) -> &'static str {
        match (self.layers, self.overlap) {
            (0, _) => "block-jacobi",
            (_, Overlap::Added) => "schwarz",
            (_, Overlap::Restricted) => "ras",
        }
    }
    fn kind(&self) -> PreconditionerKind {
        self.kind
    }
    fn apply(&mut self, r: &[T], z: &mut [T]) -> Result<()> {
        check_lengths(self.m, r, z);
        if self.in_place {
            self.solver.apply(r, z);
            for z in z {
                *z *= self.scale;
            }
            return Ok(());
        }
        // rᵢ ← Rᵢ·r
        let (own, halo) = self.extended.split_at_mut(self.m);
        own.copy_from_slice(r);
        if self.layers > 0 {
            self.halo.exchange(self.comm, r, halo, || {})?;
        }
        self.r.iter_mut().zip(&self.places).for_each(|(r, &k)| *r = self.extended[k as usize]);
        // zᵢ ← Mᵢ⁻¹·rᵢ
        self.solver.apply(&self.r, &mut self.z);
        self.z.iter().zip(&self.places).for_each(|(&v, &k)| self.extended[k as usize] = v * self.scale);
        // z ← R̃ᵢᵀ·zᵢ, or Σ Rᵢᵀ·zᵢ
        let (own, halo) = self.extended.split_at(self.m);
        z.copy_from_slice(own);
        if self.layers > 0 && self.overlap == Overlap::Added {
            self.halo.add_back(self.comm, halo, z)?;
        }
        Ok(())
    }
    fn nnz(&self) -> usize {
        self.solver.nnz()
    }
    fn bytes(&self) -> usize {
        self.solver.bytes() + size_of_val(&*self.places) + 3 * size_of_val(&*self.extended)
    }
}
