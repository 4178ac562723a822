//! harwell_boeing
