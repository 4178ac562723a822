//! The processor of this machine: seconds of one model are not compared with those of another.

/// Its model where the system says it, in `/proc/cpuinfo`, and `unknown` elsewhere.
///
/// ```
/// let processor = bt_reproduce::processor();
/// assert!(!processor.is_empty() && processor.trim() == processor);
/// ```
pub fn processor() -> String {
    model(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn model(text: &str) -> String {
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("unknown", |(_, name)| name.trim()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_model_counts() {
        let text = "processor\t: 0\nmodel\t\t: 143\nmodel name\t: A: 2 GHz \nprocessor\t: 1\nmodel name\t: B\n";
        assert_eq!(
            (model(text), model("Hardware : C\n"), model("")),
            ("A: 2 GHz".into(), "unknown".into(), "unknown".into())
        );
    }
}
