//! Times of methods on model problems, end to end.

use blocktri::faer::Mat;
use blocktri::{Csr, Krylov, KrylovMethod, Method, SolveOptions, solve};
use std::time::Instant;

fn rnd(s: &mut u64) -> f64 {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    (*s >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

fn band(n: usize, kl: usize, ku: usize) -> Csr<f64> {
    let mut s = 88172645463325252u64;
    let mut p = vec![0u32];
    let (mut c, mut v) = (vec![], vec![]);
    for i in 0..n {
        for j in i.saturating_sub(kl)..(i + ku + 1).min(n) {
            c.push(j as u32);
            v.push(if i == j {
                (kl + ku) as f64
            } else if kl == ku {
                let t = (i.min(j) * 31 + i.max(j) * 17) % 97;
                t as f64 / 97.0 - 0.5
            } else {
                rnd(&mut s)
            });
        }
        p.push(c.len() as u32);
    }
    Csr::new(n, n, p, c, v).unwrap()
}
fn blocks(m: usize, k: usize) -> Csr<f64> {
    let n = m * k;
    let mut p = vec![0u32];
    let (mut c, mut v) = (vec![], vec![]);
    for i in 0..n {
        let b = i / k;
        for j in (b.saturating_sub(1)) * k..((b + 2) * k).min(n) {
            c.push(j as u32);
            let t = (i.min(j) * 31 + i.max(j) * 17) % 97;
            v.push(if i == j { 3.0 * k as f64 } else { t as f64 / 97.0 - 0.5 });
        }
        p.push(c.len() as u32);
    }
    Csr::new(n, n, p, c, v).unwrap()
}
fn grid(nx: usize, d: usize) -> Csr<f64> {
    let n = nx.pow(d as u32);
    let mut p = vec![0u32];
    let (mut c, mut v) = (vec![], vec![]);
    for i in 0..n {
        let mut row = vec![(i, 2.0 * d as f64)];
        let mut stride = 1;
        for _ in 0..d {
            let x = i / stride % nx;
            if x > 0 {
                row.push((i - stride, -1.0));
            }
            if x + 1 < nx {
                row.push((i + stride, -1.0));
            }
            stride *= nx;
        }
        row.sort_by_key(|e| e.0);
        for (j, a) in row {
            c.push(j as u32);
            v.push(a);
        }
        p.push(c.len() as u32);
    }
    Csr::new(n, n, p, c, v).unwrap()
}
fn time(label: &str, a: &Csr<f64>, m: Method) {
    let n = blocktri_n(a);
    let b = Mat::from_fn(n, 1, |i, _| 1.0 + (i % 7) as f64);
    let mut best: Option<(f64, String)> = None;
    for _ in 0..3 {
        let t = Instant::now();
        let s = solve(a, b.as_ref(), &SolveOptions::by(m.clone()), &mut ());
        let t = t.elapsed().as_secs_f64();
        let s = match s {
            Ok(s) => s,
            Err(e) => {
                println!("{label} {m}: {e}");
                return;
            }
        };
        let r = &s.report;
        let text = format!(
            "re {:.2} su {:.2} so {:.2} it {} bytes {} {}",
            r.times.reorder.as_secs_f64() * 1e3,
            r.times.setup.as_secs_f64() * 1e3,
            r.times.solve.as_secs_f64() * 1e3,
            r.iterations,
            r.bytes.factors,
            r.outcome.name()
        );
        if best.as_ref().is_none_or(|b| t < b.0) {
            best = Some((t, text));
        }
    }
    let (t, text) = best.unwrap();
    println!("{label:18} {:16} {:9.3} ms  {text}", m.to_string(), t * 1e3);
}
fn blocktri_n(a: &Csr<f64>) -> usize {
    a.row_ptr().len() - 1
}
fn main() {
    if std::env::args().nth(1).as_deref() == Some("plan") {
        let g: Vec<usize> = std::env::args().skip(2).map(|v| v.parse().unwrap()).collect();
        let a = band(g[0], g[1], g[1]);
        for c in blocktri::analyze(&a).unwrap().candidates {
            println!("{} {} {:.2e} s {} B {} {:?}", c.method, c.reorder, c.seconds, c.bytes, c.structure, c.work);
        }
        return;
    }
    if std::env::args().nth(1).as_deref() == Some("one") {
        let g: Vec<usize> = std::env::args().skip(2).map(|v| v.parse().unwrap()).collect();
        let a = band(g[0], g[1], g[1]);
        let b = Mat::from_fn(g[0], 1, |i, _| 1.0 + (i % 7) as f64);
        for _ in 0..g[2] {
            solve(&a, b.as_ref(), &SolveOptions::default(), &mut ()).unwrap();
        }
        return;
    }
    if std::env::args().nth(1).as_deref() == Some("calibrate") {
        let t = Instant::now();
        for (n, v) in blocktri::calibrate(&mut ()).unwrap().constants() {
            println!("{n} {v:.3e}");
        }
        println!("{:?}", t.elapsed());
        return;
    }
    rayon_one();
    let which: Vec<String> = std::env::args().skip(1).collect();
    let m = |s: &str| s.parse::<Method>().unwrap();
    let want = |s: &str| which.is_empty() || which.iter().any(|w| w == s);
    if want("tri") {
        for n in [1000, 100_000, 1_000_000] {
            let a = band(n, 1, 1);
            for k in ["thomas", "tridiagonal-lu", "auto"] {
                time(&format!("tri {n}"), &a, m(k));
            }
        }
    }
    if want("band") {
        for (n, k) in [(100_000, 2), (100_000, 8), (20_000, 32), (5000, 128), (3000, 400)] {
            let a = band(n, k, k);
            for s in ["band-lu", "band-lu-nopivot", "band-cholesky", "auto"] {
                time(&format!("band {n} {k}"), &a, m(s));
            }
        }
    }
    if want("block") {
        for (n, k) in [(50_000, 2), (10_000, 4), (5000, 8), (2000, 16), (1000, 32), (200, 64), (40, 200)] {
            let a = blocks(n, k);
            for s in ["block-lu", "block-cholesky", "band-lu", "auto"] {
                time(&format!("block {n}x{k}"), &a, m(s));
            }
        }
    }
    if want("sparse") {
        for (nx, d) in [(30, 2), (100, 2), (300, 2), (10, 3), (20, 3), (30, 3)] {
            let a = grid(nx, d);
            for s in ["sparse-lu", "auto"] {
                time(&format!("grid {nx}^{d}"), &a, m(s));
            }
            for (k, p) in [(KrylovMethod::Cg, "ic0"), (KrylovMethod::BiCgStab, "ilu0")] {
                let mut kr = Krylov::new(k, p.parse().unwrap());
                kr.stop.rtol = 1e-12;
                time(&format!("grid {nx}^{d} {p}"), &a, Method::from(kr));
            }
        }
    }
    if want("dense") {
        for n in [100, 500, 1500] {
            let a = band(n, n, n);
            for s in ["dense-lu", "auto"] {
                time(&format!("dense {n}"), &a, m(s));
            }
        }
    }
}
fn rayon_one() {}
