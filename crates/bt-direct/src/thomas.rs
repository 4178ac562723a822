//! thomas
