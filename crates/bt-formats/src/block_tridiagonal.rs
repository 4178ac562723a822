//! block_tridiagonal
