//! `blocktri generate`: matrices of known kinds, written with the command that made them in their comments.

use std::path::Path;

use blocktri::faer::MatRef;
use blocktri::{Csr, Partition};
use bt_formats::memory;
use bt_queue::{CloudCase, CloudVariant, ElasticDisk, Order, Plane, UnitDisk, meshes};
use serde_json::json;

use crate::args::{
    BandRandomArgs, BlockRandomArgs, BlocksArg, CloudArgs, ConvectionArgs, CopiesArgs, DiskArgs, ElasticityArgs,
    GenerateArgs, GenerateQueueArgs, Global, Kind, MatrixArg, PlaneArg, Poisson2dArgs, Poisson3dArgs, Scheme, Seed,
    Target, TridiagonalArgs, VariantArg,
};
use crate::exit::{Exit, Failure, Reply, Result};
use crate::load;
use crate::output::{self, Format, Output};

/// A matrix made, and how.
struct Made {
    kind: &'static str,
    matrix: Csr<f64>,
    /// One line that says everything needed to make it again.
    how: String,
    seed: Option<u64>,
    /// A right-hand side that belongs to it.
    load: Option<Vec<f64>>,
}

/// Runs the command.
///
/// # Errors
/// On parameters that make no matrix, and when the file cannot be written.
pub fn run(args: &GenerateArgs, global: &Global) -> Result<Reply> {
    let (target, make): (&Target, Box<dyn FnOnce() -> Result<Made> + '_>) = match &args.kind {
        Kind::Cloud(args) => (&args.target, Box::new(|| cloud(args))),
        Kind::Queue(args) => (&args.target, Box::new(|| queue(args))),
        Kind::Tridiagonal(args) => (&args.target, Box::new(|| tridiagonal(args))),
        Kind::BandRandom(args) => (&args.target, Box::new(|| band_random(args))),
        Kind::BlockRandom(args) => (&args.target, Box::new(|| block_random(args))),
        Kind::Poisson2d(args) => (&args.target, Box::new(|| poisson2d(args))),
        Kind::Poisson3d(args) => (&args.target, Box::new(|| poisson3d(args))),
        Kind::PoissonDisk(args) => (&args.target, Box::new(|| poisson_disk(args))),
        Kind::ElasticityDisk(args) => (&args.target, Box::new(|| elasticity_disk(args))),
        Kind::Edf(args) => (&args.target, Box::new(|| copies("edf", args, meshes::edf))),
        Kind::Flame(args) => (&args.target, Box::new(|| copies("flame", args, meshes::flame))),
        Kind::Epb3(args) => (&args.target, Box::new(|| copies("epb3", args, meshes::epb3))),
        Kind::ConvectionDiffusion(args) => (&args.target, Box::new(|| convection_diffusion(args))),
    };
    let load_file = match &args.kind {
        Kind::PoissonDisk(disk) => disk.rhs.as_deref(),
        Kind::ElasticityDisk(disk) => disk.rhs.as_deref(),
        _ => None,
    };
    let sizes = match &args.kind {
        Kind::BlockRandom(BlockRandomArgs { blocks: BlocksArg::File(file), .. }) => Some(file.as_path()),
        _ => None,
    };
    let outputs = [("--output", Some(target.output.as_path())), ("--rhs", load_file)];
    output::check_names(global, &[("--blocks", sizes)], &outputs)?;
    for (_, name) in outputs {
        name.map(|name| Format::of(name, &[Format::MatrixMarket])).transpose()?;
    }
    let mut output = Output::create(&target.output)?;
    let load_file = load_file.map(Output::create).transpose()?;
    let Made { kind, matrix, how, seed, load } = make()?;
    let comments = [format!("blocktri {} generate {how}", env!("CARGO_PKG_VERSION"))];
    load::write_matrix(&mut output, &matrix, &comments)?;
    let file = output.name().display().to_string();
    if let (Some(mut rhs), Some(load)) = (load_file, load) {
        load::write_dense(&mut rhs, MatRef::from_column_major_slice(&load, load.len(), 1), &comments)?;
        rhs.finish()?;
    }
    output.finish()?;
    let (n, nnz) = (bt_formats::LinearOperator::nrows(&matrix), matrix.values().len());
    Ok(Reply {
        exit: Exit::Done,
        json: json!({ "schema": 1, "file": file, "kind": kind, "n": n, "nnz": nnz, "seed": seed }),
        text: format!("{file}: {how}, n = {n}, nnz = {nnz}\n"),
        warnings: Vec::new(),
    })
}

fn bad(error: &bt_formats::Error) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error.help() {
        Some(help) => failure.help(help),
        None => failure,
    }
}

fn cloud(args: &CloudArgs) -> Result<Made> {
    let (case, how, seed) = match (&args.case, args.block_size, args.levels) {
        (Some(name), ..) => {
            let (variant, letter) = match args.variant {
                VariantArg::N => (CloudVariant::Noisy, ""),
                VariantArg::S => (CloudVariant::Smooth, " --variant s"),
                VariantArg::M => (CloudVariant::MMatrix, " --variant m"),
                VariantArg::Eq8 => {
                    return Err(Failure::usage(
                        "variant eq8: the paper gives neither K nor the rates of Eq. (8) for its matrices, and no choice of them has as \
                         many non-zeros as eight of the ten",
                    )
                    .help("'generate queue' writes the generator of Eq. (8) for rates of your own"));
                }
            };
            (CloudCase::by_name(name).map(|c| c.variant(variant)), format!("cloud --case {name}{letter}"), None)
        }
        (None, Some(k), Some(m)) => {
            let seed = args.seed.unwrap_or(1);
            let how = format!("cloud --block-size {k} --levels {m} --seed {seed}");
            (CloudCase::family(k, m, seed), how, Some(seed))
        }
        _ => return Err(Failure::usage("either --case NAME, or --block-size K and --levels M")),
    };
    let matrix = case.and_then(|case| case.matrix()).map_err(|e| bad(&e))?;
    Ok(Made { kind: "cloud", matrix, how, seed, load: None })
}

fn queue(args: &GenerateQueueArgs) -> Result<Made> {
    let parameters = args.model.parameters(None)?;
    let order = args.order.into();
    let name = match order {
        Order::LevelMajor => "level",
        Order::TaskMajor => "tasks",
    };
    let letter = match args.matrix {
        MatrixArg::Q => 'q',
        MatrixArg::P => 'p',
    };
    let how = format!("queue {} --order {name} --matrix {letter}", parameters.as_options());
    let q = parameters.model().and_then(|model| model.generator(order));
    let matrix = q.and_then(|q| match args.matrix {
        MatrixArg::Q => Ok(q.into_matrix()),
        MatrixArg::P => q.uniformise(1.0).map(|u| u.p),
    });
    let matrix = matrix.map_err(|e| crate::queue::failure(&e, None))?;
    Ok(Made { kind: "queue", matrix, how, seed: None, load: None })
}

fn tridiagonal(args: &TridiagonalArgs) -> Result<Made> {
    let n = args.n;
    let (matrix, how) = if let Some(seed) = args.seed {
        let how = format!("tridiagonal --n {n} --seed {seed} --dominance {}", args.dominance);
        let columns = |i: usize| i.saturating_sub(1)..(i + 2).min(n);
        (random(n, bounded(n, 3)?, seed, args.dominance, columns, |_, _| 1.0)?, how)
    } else {
        let how = format!("tridiagonal --n {n} --lower {} --diag {} --upper {}", args.lower, args.diag, args.upper);
        let fill = |i: usize, row: &mut Vec<(usize, f64)>| {
            if i > 0 {
                row.push((i - 1, args.lower));
            }
            row.push((i, args.diag));
            if i + 1 < n {
                row.push((i + 1, args.upper));
            }
        };
        (by_rows(n, bounded(n, 3)?, fill)?, how)
    };
    Ok(Made { kind: "tridiagonal", matrix, how, seed: args.seed, load: None })
}

fn band_random(args: &BandRandomArgs) -> Result<Made> {
    let &BandRandomArgs { n, kl, ku, density, dominance, seed: Seed { seed }, .. } = args;
    let (kl_used, ku_used) = (kl.min(n - 1), ku.min(n - 1));
    let how =
        format!("band-random --n {n} --kl {kl} --ku {ku} --density {density} --dominance {dominance} --seed {seed}");
    let columns = |i: usize| i.saturating_sub(kl_used)..(i + ku_used + 1).min(n);
    let matrix = random(n, bounded(n, kl_used + ku_used + 1)?, seed, dominance, columns, |_, _| density)?;
    Ok(Made { kind: "band-random", matrix, how, seed: Some(seed), load: None })
}

fn block_random(args: &BlockRandomArgs) -> Result<Made> {
    let &BlockRandomArgs { density, coupling, dominance, seed: Seed { seed }, .. } = args;
    let (blocks, partition) = match (&args.blocks, args.n) {
        (BlocksArg::Uniform(k), Some(n)) => (format!("{k} --n {n}"), Partition::uniform(n, *k)),
        (BlocksArg::Uniform(_), None) => {
            return Err(Failure::usage("a uniform block size needs the number of rows").help("add --n N"));
        }
        (BlocksArg::File(file), n) => {
            let sizes = load::block_sizes(file, n)?;
            (file.display().to_string(), Partition::from_sizes(sizes))
        }
    };
    let partition = partition.map_err(|e| bad(&e))?;
    let n = partition.n();
    let how = format!(
        "block-random --blocks {blocks} --density {density} --coupling {coupling} --dominance {dominance} --seed {seed}"
    );
    let last = partition.n_blocks().saturating_sub(1);
    let columns = |i: usize| {
        let j = partition.block_of(i);
        partition.range(j.saturating_sub(1)).start..partition.range((j + 1).min(last)).end
    };
    let within = |i: usize, j: usize| if partition.block_of(i) == partition.block_of(j) { density } else { coupling };
    let entries = (0..partition.n_blocks()).try_fold(0usize, |sum, j| {
        let start = partition.range(j).start;
        partition.size(j).checked_mul(columns(start).len()).and_then(|k| sum.checked_add(k))
    });
    let matrix = random(n, entries.ok_or_else(too_large)?, seed, dominance, columns, within)?;
    Ok(Made { kind: "block-random", matrix, how, seed: Some(seed), load: None })
}

fn poisson2d(args: &Poisson2dArgs) -> Result<Made> {
    let (nx, ny) = (args.nx, args.ny.unwrap_or(args.nx));
    let matrix = grid([nx, ny, 1], [[-1.0; 2], [-1.0; 2], [0.0; 2]], 4.0)?;
    Ok(Made { kind: "poisson2d", matrix, how: format!("poisson2d --nx {nx} --ny {ny}"), seed: None, load: None })
}

fn poisson3d(args: &Poisson3dArgs) -> Result<Made> {
    let (nx, ny, nz) = (args.nx, args.ny.unwrap_or(args.nx), args.nz.unwrap_or(args.nx));
    let matrix = grid([nx, ny, nz], [[-1.0; 2]; 3], 6.0)?;
    Ok(Made {
        kind: "poisson3d",
        matrix,
        how: format!("poisson3d --nx {nx} --ny {ny} --nz {nz}"),
        seed: None,
        load: None,
    })
}

fn elasticity_disk(args: &ElasticityArgs) -> Result<Made> {
    let &ElasticityArgs { n, plane, nu, .. } = args;
    let (plane, name) = match plane {
        PlaneArg::Strain => (Plane::Strain, "strain"),
        PlaneArg::Stress => (Plane::Stress, "stress"),
    };
    let (matrix, load) = ElasticDisk::new(n, plane, nu).map_err(|e| bad(&e))?.into_parts();
    let how = format!("elasticity-disk --n {n} --plane {name} --nu {nu}");
    Ok(Made { kind: "elasticity-disk", matrix, how, seed: None, load: Some(load) })
}

fn poisson_disk(args: &DiskArgs) -> Result<Made> {
    let (matrix, load) = UnitDisk::new(args.n).map_err(|e| bad(&e))?.into_parts();
    Ok(Made { kind: "poisson-disk", matrix, how: format!("poisson-disk --n {}", args.n), seed: None, load: Some(load) })
}

fn copies(kind: &'static str, args: &CopiesArgs, make: fn(usize) -> bt_formats::Result<Csr<f64>>) -> Result<Made> {
    let matrix = make(args.copies).map_err(|e| bad(&e))?;
    Ok(Made { kind, matrix, how: format!("{kind} --copies {}", args.copies), seed: None, load: None })
}

/// h²(−Δ + w·∇) / ε with the cell Péclet number P = |w|·h/ε: the neighbour against the wind gets −1 − P·w/2 (central)
/// or −1 − P·w (upwind), the one down the wind −1 + P·w/2 or −1, for each component w of the unit vector.
fn convection_diffusion(args: &ConvectionArgs) -> Result<Made> {
    let (nx, ny, peclet) = (args.nx, args.ny.unwrap_or(args.nx), args.peclet);
    let (sin, cos) = args.angle.to_radians().sin_cos();
    let stencil = [cos, sin].map(|w| {
        let p = peclet * w;
        match args.scheme {
            Scheme::Central => [-1.0 - p / 2.0, -1.0 + p / 2.0],
            Scheme::Upwind => [-1.0 - p.max(0.0), -1.0 + p.min(0.0)],
        }
    });
    let diagonal = -stencil.iter().flatten().sum::<f64>();
    let matrix = grid([nx, ny, 1], [stencil[0], stencil[1], [0.0; 2]], diagonal)?;
    let scheme = match args.scheme {
        Scheme::Upwind => "upwind",
        Scheme::Central => "central",
    };
    let how =
        format!("convection-diffusion --nx {nx} --ny {ny} --peclet {peclet} --angle {} --scheme {scheme}", args.angle);
    Ok(Made { kind: "convection-diffusion", matrix, how, seed: None, load: None })
}

/// A constant stencil on a box of points, x fastest, zero outside: [before, after] along each axis, and the centre.
fn grid(points: [usize; 3], stencil: [[f64; 2]; 3], centre: f64) -> Result<Csr<f64>> {
    let [nx, ny, nz] = points;
    let n = nx.checked_mul(ny).and_then(|k| k.checked_mul(nz)).ok_or_else(too_large)?;
    let strides = [1, nx, nx * ny];
    by_rows(n, bounded(n, 7)?, |i, row| {
        let place = [i % nx, i / nx % ny, i / (nx * ny)];
        for axis in (0..3).rev().filter(|&axis| place[axis] > 0) {
            row.push((i - strides[axis], stencil[axis][0]));
        }
        row.push((i, centre));
        for axis in (0..3).filter(|&axis| place[axis] + 1 < points[axis]) {
            row.push((i + strides[axis], stencil[axis][1]));
        }
    })
}

/// Entries uniform in (−1, 1) in the given columns with the given probability, the diagonal always, its modulus
/// enlarged by `dominance` times the other moduli of its row.
fn random(
    n: usize,
    entries: usize,
    seed: u64,
    dominance: f64,
    columns: impl Fn(usize) -> std::ops::Range<usize>,
    probability: impl Fn(usize, usize) -> f64,
) -> Result<Csr<f64>> {
    let mut random = SplitMix64(seed);
    by_rows(n, entries, |i, row| {
        let mut others = 0.0;
        let mut diagonal = 0;
        for j in columns(i) {
            if i == j {
                diagonal = row.len();
                row.push((j, random.symmetric()));
            } else {
                let p = probability(i, j);
                if p >= 1.0 || random.unit() < p {
                    let value = random.symmetric();
                    others += value.abs();
                    row.push((j, value));
                }
            }
        }
        let pivot = &mut row[diagonal].1;
        *pivot += dominance * others.copysign(*pivot);
    })
}

/// n·k entries at most.
fn bounded(n: usize, k: usize) -> Result<usize> {
    n.checked_mul(k).ok_or_else(too_large)
}

fn too_large() -> Failure {
    Failure::usage(format!("the matrix would exceed the {} rows and entries of 32-bit indices", u32::MAX - 1))
}

/// A matrix from a function that lists each row, columns increasing. `entries` is the most there can be.
fn by_rows(n: usize, entries: usize, mut fill: impl FnMut(usize, &mut Vec<(usize, f64)>)) -> Result<Csr<f64>> {
    if n >= u32::MAX as usize || entries >= u32::MAX as usize {
        return Err(too_large());
    }
    let bytes = (n as u64 + 1) * 4 + entries as u64 * 12;
    memory::ask(bytes, "the matrix").map_err(|e| Failure::input(&e, Path::new("generate")))?;
    let out_of_memory = |_| Failure::usage(format!("not enough memory for {entries} entries in {n} rows"));
    let (mut row_ptr, mut col_idx, mut values) = (Vec::new(), Vec::new(), Vec::new());
    row_ptr.try_reserve_exact(n + 1).map_err(out_of_memory)?;
    col_idx.try_reserve_exact(entries).map_err(out_of_memory)?;
    values.try_reserve_exact(entries).map_err(out_of_memory)?;
    row_ptr.push(0);
    let mut row = Vec::new();
    for i in 0..n {
        row.clear();
        fill(i, &mut row);
        for &(j, value) in &row {
            col_idx.push(j as u32);
            values.push(value);
        }
        row_ptr.push(col_idx.len() as u32);
    }
    Csr::new(n, n, row_ptr, col_idx, values).map_err(|e| bad(&e))
}

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014, doi:10.1145/2660193.2660195): its bits will not change with the
/// version of a library, so a seed names a file for good.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }
    /// Uniform in (−1, 1), never zero.
    fn symmetric(&mut self) -> f64 {
        let bits = self.next();
        let modulus = ((bits >> 12) as f64 + 0.5) * 2f64.powi(-52);
        if bits & 1 == 0 { modulus } else { -modulus }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_the_published_numbers() {
        // Seed 1234567, from the reference implementation.
        let mut random = SplitMix64(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn grid_of_two_by_two() {
        let a = grid([2, 2, 1], [[-1.0, -2.0], [-3.0, -4.0], [0.0; 2]], 10.0).unwrap();
        let expected = faer::mat([
            [10.0, -2.0, -4.0, 0.0],
            [-1.0, 10.0, 0.0, -4.0],
            [-3.0, 0.0, 10.0, -2.0],
            [0.0, -3.0, -1.0, 10.0],
        ]);
        assert_eq!(a.to_dense(), expected);
    }

    #[test]
    fn random_rows_dominate_as_asked() {
        let a = random(50, 50 * 5, 3, 1.5, |i| i.saturating_sub(2)..(i + 3).min(50), |_, _| 1.0).unwrap();
        for i in 0..50 {
            let (columns, values) = a.row(i);
            let others: f64 = columns.iter().zip(values).filter(|(j, _)| **j as usize != i).map(|(_, v)| v.abs()).sum();
            assert!(a.get(i, i).abs() > 1.5 * others);
        }
    }

    #[test]
    fn sizes_beyond_32_bits_are_refused() {
        assert!(grid([100_000, 100_000, 100_000], [[-1.0; 2]; 3], 6.0).is_err());
        assert!(grid([usize::MAX, 2, 2], [[-1.0; 2]; 3], 6.0).is_err());
        assert!(by_rows(1 << 31, 1 << 33, |_, _| ()).is_err());
    }

    mod faer {
        use blocktri::faer::Mat;
        pub fn mat(rows: [[f64; 4]; 4]) -> Mat<f64> {
            Mat::from_fn(4, 4, |i, j| rows[i][j])
        }
    }
}
