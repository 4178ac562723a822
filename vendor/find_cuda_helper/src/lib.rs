//! Stands in for the crate of the same name, which cust's build scripts call: it looks for no CUDA installation and links
//! no driver. The driver's functions come from `bt-cuda-driver` instead.

/// Does nothing: the bindings are generated in advance, and nothing is linked.
pub fn include_cuda() {}
