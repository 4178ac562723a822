//! A small dense matrix under construction, its entries as [re, im].

/// A dense matrix under construction.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub n: usize,
    pub v: Vec<[f64; 2]>,
}

impl Grid {
    pub fn zeros(n: usize) -> Self {
        Self { n, v: vec![[0.0; 2]; n * n] }
    }

    pub fn at(&mut self, i: usize, j: usize) -> &mut [f64; 2] {
        &mut self.v[i * self.n + j]
    }

    pub fn get(&self, i: usize, j: usize) -> [f64; 2] {
        self.v[i * self.n + j]
    }

    /// Rows and columns in another order.
    pub fn shuffled(&self, rows: &[usize], columns: &[usize]) -> Self {
        let mut to = Self::zeros(self.n);
        for i in 0..self.n {
            for j in 0..self.n {
                *to.at(i, j) = self.get(rows[i], columns[j]);
            }
        }
        to
    }

    /// A·A of a real matrix.
    pub fn squared(&self) -> Self {
        let mut to = Self::zeros(self.n);
        for i in 0..self.n {
            for j in 0..self.n {
                *to.at(i, j) = [(0..self.n).map(|k| self.get(i, k)[0] * self.get(k, j)[0]).sum(), 0.0];
            }
        }
        to
    }

    pub fn scale(&mut self, i: usize, j: usize, factor: f64) {
        let v = self.at(i, j);
        *v = [v[0] * factor, v[1] * factor];
    }
}
