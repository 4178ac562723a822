//! band_lu
