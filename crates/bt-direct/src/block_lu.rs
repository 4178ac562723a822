//! block_lu
