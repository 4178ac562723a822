//! sparse_lu
