//! From the text of a value to the value, or to a sentence on what is needed.

use std::ops::RangeInclusive;

use blocktri::{DeviceChoice, HostBlocks, Local, Method, Precision, Precond, Reorder};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::method;

pub fn device(text: &str) -> Result<DeviceChoice, String> {
    text.parse()
}

/// The processor, or what `auto` weighs.
pub fn weighed_device(text: &str) -> Result<DeviceChoice, String> {
    match device(text) {
        Ok(place @ (DeviceChoice::Cpu | DeviceChoice::Auto)) => Ok(place),
        _ => Err("devices to weigh: cpu, auto".into()),
    }
}

/// A place by name: what `--device auto` weighs is one system.
pub fn cpu_or_gpu(text: &str) -> Result<DeviceChoice, String> {
    match device(text) {
        Ok(DeviceChoice::Auto) | Err(_) if !text.starts_with("gpu:") => {
            Err("devices: cpu, gpu, gpu:0, gpu:1, …".into())
        }
        Ok(DeviceChoice::Gpus(_)) => Err(format!("'{text}': one GPU does this: gpu, gpu:0, gpu:1, …")),
        other => other,
    }
}

pub fn host_blocks(text: &str) -> Result<HostBlocks, String> {
    match text {
        "none" => Ok(HostBlocks::None),
        "measured" => Ok(HostBlocks::Measured),
        _ => size(text).map(HostBlocks::Count).map_err(|_| "none, measured or a number of blocks is needed".into()),
    }
}

pub fn method_name() -> impl TypedValueParser<Value = Method> {
    let names = Method::all().into_iter().map(|m| PossibleValue::new(m.name()).help(method::summary(&m)));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Method>())
}

pub fn precond() -> impl TypedValueParser<Value = Precond> {
    PossibleValuesParser::new(Precond::all().iter().map(Precond::name)).try_map(|name| name.parse::<Precond>())
}

pub fn precision() -> impl TypedValueParser<Value = Precision> {
    PossibleValuesParser::new(Precision::ALL.map(Precision::name))
        .try_map(|name| Precision::ALL.into_iter().find(|p| p.name() == name).ok_or("unknown precision"))
}

pub fn local() -> impl TypedValueParser<Value = Local> {
    PossibleValuesParser::new(Local::all().iter().map(Local::name))
        .try_map(|name| Local::all().into_iter().find(|l| l.name() == name).ok_or("unknown local solver"))
}

pub fn reorder() -> impl TypedValueParser<Value = Reorder> {
    PossibleValuesParser::new(Reorder::ALL.map(Reorder::name))
        .try_map(|name| Reorder::ALL.into_iter().find(|r| r.name() == name).ok_or("unknown reordering"))
}

/// Rows, columns and entries at most: indices are 32-bit. Nothing that is counted in them can be more.
const MOST: usize = u32::MAX as usize - 1;

pub fn whole(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| range.contains(n))
        .ok_or_else(|| format!("a whole number from {} to {} is needed", range.start(), range.end()))
}

pub fn count(text: &str) -> Result<usize, String> {
    whole(text, 1..=MOST)
}

/// A number of things that may be none.
pub fn size(text: &str) -> Result<usize, String> {
    whole(text, 0..=MOST)
}

pub fn iterations(text: &str) -> Result<usize, String> {
    whole(text, 0..=1_000_000_000_000_000)
}

pub fn threads(text: &str) -> Result<usize, String> {
    whole(text, 1..=1024)
}

pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {} is needed", u64::MAX))
}

pub fn real(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| "a finite number is needed".into())
}

pub fn tolerance(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|&x| x >= 0.0).ok_or_else(|| "a finite number of at least 0 is needed".into())
}

pub fn seconds(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|&x| x > 0.0).ok_or_else(|| "a positive number of seconds is needed".into())
}

pub fn relaxation(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|&x| x > 0.0 && x < 2.0).ok_or_else(|| "a number between 0 and 2 is needed".into())
}

pub fn probability(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| "a number from 0 to 1 is needed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_parse() {
        assert_eq!(device("gpu:3"), Ok(DeviceChoice::Gpu(3)));
        assert!(device("gpu:x").is_err() && device("tpu").is_err());
        assert_eq!(device("gpu:2,0").map(|d| d.to_string()), Ok("gpu:0,2".into()));
        assert_eq!(device("gpu:1,1"), Err("'1,1': several GPUs have different numbers, at most 63".into()));
        assert_eq!(device("gpu:0,"), Err("'' is not the number of a GPU".into()));
        assert!(cpu_or_gpu("gpu:0,1").is_err_and(|why| why.contains("one GPU does this")));
        assert_eq!(cpu_or_gpu("gpu:1"), Ok(DeviceChoice::Gpu(1)));
        assert_eq!(cpu_or_gpu("cpu"), Ok(DeviceChoice::Cpu));
        assert!(cpu_or_gpu("auto").is_err() && cpu_or_gpu("gpu:x").is_err());
        assert_eq!(host_blocks("3"), Ok(HostBlocks::Count(3)));
        assert_eq!(host_blocks("measured"), Ok(HostBlocks::Measured));
        assert!(host_blocks("-1").is_err() && host_blocks("all").is_err());
    }

    #[test]
    fn numbers_out_of_range_are_told_the_range() {
        assert_eq!(size("18446744073709551615").unwrap_err(), "a whole number from 0 to 4294967294 is needed");
        assert_eq!(count("0").unwrap_err(), "a whole number from 1 to 4294967294 is needed");
        assert_eq!((size("0"), count("4294967294")), (Ok(0), Ok(4_294_967_294)));
        assert!(seed("-1").is_err() && iterations("18446744073709551615").is_err() && threads("1025").is_err());
    }
}
