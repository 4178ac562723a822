//! The tips by recursive doubling: neighbouring segments become one, level by level, and their tips go back the same way.
//!
//! A segment of ranks knows its outer tips by what surrounds it, t = gᵗ − Vᵗ·t₊ − Wᵗ·b₋ and b = gᵇ − Vᵇ·t₊ − Wᵇ·b₋. Where segments L and R meet:
//!
//! ```text
//! [ I   Vᵇ_L ] [ b_L ]   [ gᵇ_L ]   [ Wᵇ_L  0   ] [ b₋ ]
//! [ Wᵗ_R  I  ] [ t_R ] = [ gᵗ_R ] − [ 0    Vᵗ_R ] [ t₊ ]         order 2k, by LU with partial pivoting
//!
//! t = gᵗ_L − Vᵗ_L·t_R − Wᵗ_L·b₋           b = gᵇ_R − Vᵇ_R·t₊ − Wᵇ_R·b_L            of L and R as one
//! ```
//!
//! At level l rank 2^{l+1}·j leads L and rank 2^{l+1}·j + 2^l leads R, which sends 4k² numbers when factors are made, 2k for each right-hand side
//! on the way up, and receives as many on the way down. That is the recursive form of the reduced system in E. Polizzi, A. H. Sameh,
//! Comput. Fluids 36 (2007) 113–120, doi:10.1016/j.compfluid.2005.07.005, with the ranks in the place of its partitions.

use bt_direct::{Factorization, PartialPivotLu};
use faer::Mat;

use super::local::{Around, Local, Tips};
use crate::comm::{Comm, Number, Tag};
use crate::error::{Fault, FaultKind, Result};

const FACTORS: Tag = Tag(3);
const UP: Tag = Tag(4);
const DOWN: Tag = Tag(5);

/// Of one rank: the levels at which it leads a left segment, and to whom its segment goes then.
pub(super) struct Tree<T: Number> {
    k: usize,
    joints: Vec<Joint<T>>,
    parent: Option<usize>,
}

/// Where two segments meet.
struct Joint<T: Number> {
    /// The rank that leads R.
    right: usize,
    lu: PartialPivotLu<T>,
    /// The 2k × 2k system's solution for (b₋; t₊), with the sign: (b_L; t_R) = h − Z·(b₋; t₊).
    z: Mat<T>,
    /// Vᵗ_L and Wᵇ_R.
    left_top: Mat<T>,
    right_bottom: Mat<T>,
}

/// V and W of a segment.
#[derive(Clone)]
struct Segment<T> {
    v: Tips<T>,
    w: Tips<T>,
}

impl<T: Number> Tree<T> {
    /// The levels of this rank, or why a joint has no factors.
    pub fn new<C: Comm>(comm: &C, k: usize, local: &Local<T>) -> Result<Result<Self, Fault>> {
        let (rank, q) = (comm.rank(), comm.size());
        let mut segment = Segment { v: local.v.clone(), w: local.w.clone() };
        let (mut joints, mut parent, mut fault) = (Vec::new(), None, None);
        let mut stride = 1;
        while stride < q && parent.is_none() {
            if rank % (2 * stride) == 0 {
                let right = rank + stride;
                if right < q {
                    let mut packed = vec![T::default(); 4 * k * k];
                    comm.exchange(FACTORS, &[], &mut [(right, &mut packed[..])], || {})?;
                    let (v, w) = packed.split_at(2 * k * k);
                    let other = Segment { v: Tips::unpack(k, k, v), w: Tips::unpack(k, k, w) };
                    match Joint::new(k, right, &segment, &other) {
                        Ok((joint, joined)) => {
                            joints.push(joint);
                            segment = joined;
                        }
                        Err(why) => {
                            // What comes from a failed joint is no fault of the next one.
                            if other.is_finite() && segment.is_finite() {
                                fault = fault.or(Some(why));
                            }
                            segment = Segment::unknown(k);
                        }
                    }
                }
            } else {
                let packed = [segment.v.pack(), segment.w.pack()].concat();
                let none: &mut [(usize, &mut [T])] = &mut [];
                comm.exchange(FACTORS, &[(rank - stride, &packed[..])], none, || {})?;
                parent = Some(rank - stride);
            }
            stride *= 2;
        }
        Ok(fault.map_or(Ok(Self { k, joints, parent }), Err))
    }

    /// The tips of the neighbours of this rank, from those of g.
    pub fn solve<C: Comm>(&self, comm: &C, tips: &Tips<T>) -> Result<Around<T>> {
        let (k, nrhs) = (self.k, tips.top.ncols());
        let mut g = tips.clone();
        let mut halves = Vec::with_capacity(self.joints.len());
        for joint in &self.joints {
            let mut packed = vec![T::default(); 2 * k * nrhs];
            comm.exchange(UP, &[], &mut [(joint.right, &mut packed[..])], || {})?;
            let right = Tips::unpack(k, nrhs, &packed);
            // h ← [I Vᵇ_L; Wᵗ_R I]⁻¹·(gᵇ_L; gᵗ_R)
            let mut h = stacked(&g.bottom, &right.top);
            joint.lu.solve_in_place(h.as_mut());
            // gᵗ ← gᵗ_L − Vᵗ_L·h_t;  gᵇ ← gᵇ_R − Wᵇ_R·h_b
            g = Tips {
                top: &g.top - &joint.left_top * h.subrows(k, k),
                bottom: right.bottom - &joint.right_bottom * h.subrows(0, k),
            };
            halves.push(h);
        }
        // (b₋; t₊) of the segment that this rank leads.
        let mut around = Mat::zeros(2 * k, nrhs);
        if let Some(parent) = self.parent {
            let none: &mut [(usize, &mut [T])] = &mut [];
            comm.exchange(UP, &[(parent, &g.pack()[..])], none, || {})?;
            let mut packed = vec![T::default(); 2 * k * nrhs];
            comm.exchange(DOWN, &[], &mut [(parent, &mut packed[..])], || {})?;
            let Tips { top, bottom } = Tips::unpack(k, nrhs, &packed);
            around = stacked(&top, &bottom);
        }
        for (joint, h) in self.joints.iter().zip(halves).rev() {
            // (b_L; t_R) ← h − Z·(b₋; t₊)
            let met = h - &joint.z * &around;
            // R is between b_L and t₊, L between b₋ and t_R.
            let right = Tips { top: met.subrows(0, k).to_owned(), bottom: around.subrows(k, k).to_owned() };
            let none: &mut [(usize, &mut [T])] = &mut [];
            comm.exchange(DOWN, &[(joint.right, &right.pack()[..])], none, || {})?;
            around = stacked(&around.subrows(0, k).to_owned(), &met.subrows(k, k).to_owned());
        }
        Ok(Around { before: around.subrows(0, k).to_owned(), after: around.subrows(k, k).to_owned() })
    }

    pub fn bytes(&self) -> usize {
        let joint = |j: &Joint<T>| j.lu.stats().bytes + super::bytes_of(&[&j.z, &j.left_top, &j.right_bottom]);
        self.joints.iter().map(joint).sum()
    }
}

impl<T: Number> Joint<T> {
    /// And the two segments as one.
    fn new(k: usize, right: usize, l: &Segment<T>, r: &Segment<T>) -> Result<(Self, Segment<T>), Fault> {
        let zero = Mat::<T>::zeros(k, k);
        let identity = Mat::<T>::identity(k, k);
        let system = beside(&stacked(&identity, &r.w.top), &stacked(&l.v.bottom, &identity));
        let lu = PartialPivotLu::new(system.as_ref()).map_err(|error| {
            let what = format!("SPIKE has no factors where its segment meets that of rank {right} of those with rows");
            Fault::new(FaultKind::Breakdown, format!("{what}: {error}"))
        })?;
        // Z ← [I Vᵇ_L; Wᵗ_R I]⁻¹·[Wᵇ_L 0; 0 Vᵗ_R]
        let mut z = beside(&stacked(&l.w.bottom, &zero), &stacked(&zero, &r.v.top));
        lu.solve_in_place(z.as_mut());
        let of = |rows: usize, cols: usize| z.submatrix(rows * k, cols * k, k, k);
        let joined = Segment {
            v: Tips {
                // t: −Vᵗ_L·t_R, t_R ∋ −Z₁₁·t₊
                top: -(&l.v.top * of(1, 1)),
                // b: Vᵇ_R·t₊ + Wᵇ_R·b_L, b_L ∋ −Z₀₁·t₊
                bottom: &r.v.bottom - &r.w.bottom * of(0, 1),
            },
            w: Tips { top: &l.w.top - &l.v.top * of(1, 0), bottom: -(&r.w.bottom * of(0, 0)) },
        };
        Ok((Self { right, lu, z, left_top: l.v.top.clone(), right_bottom: r.w.bottom.clone() }, joined))
    }
}

impl<T: Number> Segment<T> {
    /// After a failure.
    fn unknown(k: usize) -> Self {
        let nan = || Mat::from_fn(k, k, |_, _| T::rounded(f64::NAN, 0.0));
        let tips = || Tips { top: nan(), bottom: nan() };
        Self { v: tips(), w: tips() }
    }

    fn is_finite(&self) -> bool {
        [&self.v, &self.w].into_iter().all(|tips| tips.pack().into_iter().all(bt_formats::Scalar::is_finite))
    }
}

/// One above the other.
fn stacked<T: Number>(top: &Mat<T>, bottom: &Mat<T>) -> Mat<T> {
    let k = top.nrows();
    Mat::from_fn(k + bottom.nrows(), top.ncols(), |i, j| if i < k { top[(i, j)] } else { bottom[(i - k, j)] })
}

/// One beside the other.
fn beside<T: Number>(left: &Mat<T>, right: &Mat<T>) -> Mat<T> {
    let k = left.ncols();
    Mat::from_fn(left.nrows(), k + right.ncols(), |i, j| if j < k { left[(i, j)] } else { right[(i, j - k)] })
}
