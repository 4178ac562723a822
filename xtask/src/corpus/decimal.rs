//! Decimal numbers beyond the range of a double: "7.5e-8100" as a mantissa and an exponent.

use std::str::FromStr;

/// m·10ᵉ with |m| in [1, 10), or zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decimal {
    mantissa: f64,
    exponent: i64,
    /// Rounded once, from the text.
    value: f64,
}

impl Decimal {
    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        self.value
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    /// log₁₀ of the number.
    pub fn log10(self) -> f64 {
        self.exponent as f64 + self.mantissa.log10()
    }
}

impl From<f64> for Decimal {
    fn from(value: f64) -> Self {
        format!("{value:e}").parse().unwrap_or(Self { mantissa: f64::NAN, exponent: 0, value })
    }
}

impl FromStr for Decimal {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a number");
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i64>().map_err(|_| wrong())?),
            None => (text, 0),
        };
        let mantissa: f64 = digits.parse().map_err(|_| wrong())?;
        let value = text.parse().map_err(|_| wrong())?;
        if mantissa == 0.0 {
            return Ok(Self { mantissa, exponent: 0, value: 0.0 });
        }
        let shift = mantissa.abs().log10().floor() as i32;
        Ok(Self { mantissa: mantissa / 10f64.powi(shift), exponent: exponent + i64::from(shift), value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_doubles() {
        let far: Decimal = "2.5e-8100".parse().unwrap();
        assert_eq!(far.to_f64(), 0.0);
        assert!(!far.is_zero());
        assert!((far.log10() - (-8100.0 + 2.5f64.log10())).abs() < 1e-11);
        let near: Decimal = "0.99999999999998".parse().unwrap();
        assert_eq!(near.to_f64(), 0.99999999999998);
        assert!((near.log10() + 8.7e-15).abs() < 1e-16);
        assert!("0.0".parse::<Decimal>().unwrap().is_zero());
        assert!("x".parse::<Decimal>().is_err());
    }
}
