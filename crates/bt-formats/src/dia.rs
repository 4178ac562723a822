//! dia
