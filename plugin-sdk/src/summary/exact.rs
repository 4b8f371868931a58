//! Sums and averages of decimals, exact.

use crate::error::{Error, Result};
use crate::value::{Decimal, Value};

/// The places that an average has beyond those of the values.
const AVERAGE_PLACES: u32 = 6;

/// A sum of integers or decimals, with the most decimal places that any of them has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactSum {
    /// The sum, in units of the last place of `scale`.
    units: i128,
    scale: u32,
    /// The most decimal places of a value, zeros at its end left out: at most `scale`.
    places: u32,
}

impl ExactSum {
    /// Returns a sum that a source has computed from values with at most this many places.
    pub fn of_source(sum: &Value<'_>, places: u32) -> Result<Self> {
        let mut exact = Self {
            units: 0,
            scale: places,
            places,
        };
        exact.add(sum)?;
        Ok(exact)
    }

    /// Adds a value; one that is neither an integer nor a decimal is left out.
    pub fn add(&mut self, value: &Value<'_>) -> Result<()> {
        let term = match value {
            Value::Integer(units) => Self {
                units: *units,
                ..Self::default()
            },
            Value::Decimal(decimal) => Self::parse(decimal)?,
            _ => return Ok(()),
        };
        self.add_term(term)
    }

    /// Adds a decimal by its digits, of which `places` are after the point.
    pub fn add_units(&mut self, units: i64, places: u8) -> Result<()> {
        let scale = u32::from(places);
        let mut places = scale;
        if scale > self.places {
            let mut digits = units;
            while places > self.places && digits % 10 == 0 {
                digits /= 10;
                places -= 1;
            }
        }
        self.add_term(Self {
            units: units.into(),
            scale,
            places,
        })
    }

    fn add_term(&mut self, term: Self) -> Result<()> {
        // Zeros at the end cost digits, and finding out where there are some costs time.
        let sum = self.plus(term);
        let sum = sum.or_else(|| self.without_zeros().plus(term.without_zeros()));
        *self = sum.ok_or_else(too_long)?;
        Ok(())
    }

    /// Returns the sum of both; `None` if it does not fit.
    fn plus(self, term: Self) -> Option<Self> {
        let scale = self.scale.max(term.scale);
        let units = self.with_scale(scale)?;
        Some(Self {
            units: units.checked_add(term.with_scale(scale)?)?,
            scale,
            places: self.places.max(term.places),
        })
    }

    /// Returns the same number with no more places than its values have. A value with fewer places than the scale is a
    /// multiple of ten, and so is a sum of such values.
    fn without_zeros(self) -> Self {
        // Of a number that fits, only zero has more zeros than a number can have.
        let zeros = 10_i128.checked_pow(self.scale - self.places);
        Self {
            units: zeros.map_or(0, |zeros| self.units / zeros),
            scale: self.places,
            ..self
        }
    }

    /// Adds a value this many times.
    pub fn add_times(&mut self, value: &Value<'_>, times: i128) -> Result<()> {
        let mut product = Self::default();
        product.add(value)?;
        let units = product.units.checked_mul(times).ok_or_else(too_long)?;
        self.add_term(Self { units, ..product })
    }

    fn parse(decimal: &Decimal<'_>) -> Result<Self> {
        let text = decimal.as_str();
        let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
        let places = u32::try_from(fraction.len()).map_err(|_| too_long())?;
        let units = match short_units(text) {
            Some(units) => units.into(),
            None => {
                let digits: String = text.chars().filter(|char| *char != '.').collect();
                digits.parse().map_err(|_| too_long())?
            }
        };
        Ok(Self {
            units,
            scale: places,
            places,
        })
    }

    fn with_scale(self, scale: u32) -> Option<i128> {
        match scale - self.scale {
            // Most values have as many places as those before, and products of such numbers are slow in a component.
            0 => Some(self.units),
            more => self.units.checked_mul(10_i128.checked_pow(more)?),
        }
    }

    /// Returns the sum as an integer, if all values were.
    pub fn integer(self) -> Value<'static> {
        Value::Integer(self.units)
    }

    /// Returns the sum as a decimal.
    pub fn decimal(self) -> Value<'static> {
        written(self.units, self.scale)
    }

    /// Returns the sum divided by the number of values, with six places more than the values have; halves go to the even
    /// neighbour.
    pub fn average(self, count: u64) -> Result<Value<'static>> {
        let places = self.places + AVERAGE_PLACES;
        let units = self
            .without_zeros()
            .with_scale(places)
            .ok_or_else(too_long)?;
        let count = i128::from(count.max(1));
        let (quotient, rest) = (units.div_euclid(count), units.rem_euclid(count));
        let up = match (2 * rest).cmp(&count) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => quotient.rem_euclid(2),
            std::cmp::Ordering::Greater => 1,
        };
        Ok(written(quotient + up, places))
    }
}

/// Returns the digits of a decimal as an integer, without its point; `None` for more digits than are sure to fit.
fn short_units(text: &str) -> Option<i64> {
    const LENGTH_MAX: usize = 18;
    if text.len() > LENGTH_MAX {
        return None;
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = unsigned.bytes().filter(u8::is_ascii_digit);
    let units = digits.fold(0, |units, digit| units * 10 + i64::from(digit - b'0'));
    Some(if unsigned.len() < text.len() {
        -units
    } else {
        units
    })
}

fn written(units: i128, places: u32) -> Value<'static> {
    let digits = format!(
        "{:0>width$}",
        units.unsigned_abs(),
        width = places as usize + 1
    );
    let (whole, fraction) = digits.split_at(digits.len() - places as usize);
    let sign = if units < 0 { "-" } else { "" };
    let text = format!("{sign}{whole}.{fraction}0");
    Decimal::parse(&text).map_or(Value::Null, |decimal| Value::Decimal(decimal.into_owned()))
}

fn too_long() -> Error {
    Error::new(
        "too_large",
        "The sum has more digits than can be computed exactly; ask for fewer records.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[&str]) -> ExactSum {
        let mut sum = ExactSum::default();
        for value in values {
            let decimal = Decimal::parse(value).expect("a decimal");
            sum.add(&Value::Decimal(decimal)).expect("it fits");
        }
        sum
    }

    #[test]
    fn sums_are_exact_and_averages_round_to_even() {
        let decimal = |value: Value<'_>| value.to_json();
        assert_eq!(decimal(sum(&["0.1", "0.2"]).decimal()), r#""0.3""#);
        assert_eq!(decimal(sum(&["-0.5", "0.5"]).decimal()), r#""0""#);
        // As many characters as are read at once, and one more.
        let long = sum(&["-9999999999999.999", "-99999999999999.999"]);
        assert_eq!(decimal(long.decimal()), r#""-109999999999999.998""#);
        let large = sum(&["99999999999999999999.98", "0.02"]);
        assert_eq!(decimal(large.decimal()), r#""100000000000000000000""#);
        let average = |values: &[&str]| {
            let count = values.len() as u64;
            decimal(sum(values).average(count).expect("it fits"))
        };
        assert_eq!(average(&["1", "1", "0"]), r#""0.666667""#);
        assert_eq!(average(&["1", "0", "0"]), r#""0.333333""#);
        assert_eq!(average(&["-1", "0", "0"]), r#""-0.333333""#);
        assert_eq!(average(&["10.25", "0", "0"]), r#""3.41666667""#);
        // Halves of the last place.
        let half = |units| {
            let sum = ExactSum {
                units,
                ..ExactSum::default()
            };
            sum.average(2_000_000).map(decimal)
        };
        assert_eq!(half(1).expect("it fits"), r#""0""#);
        assert_eq!(half(3).expect("it fits"), r#""0.000002""#);
        assert_eq!(half(-1).expect("it fits"), r#""0""#);
        assert_eq!(half(-3).expect("it fits"), r#""-0.000002""#);
    }

    /// Digits give the same sum as the text of the decimal, including trailing zeros.
    #[test]
    fn digits_are_added_as_their_decimals_are() {
        let digits = [
            &[(1_000, 2), (2_500, 2)][..],
            &[(1_000, 2), (250, 0), (-125, 3)],
            &[(0, 4), (0, 0)],
            &[(-70, 1), (-700, 2)],
            &[(1, 15), (999_999_999_999_999, 0)],
        ];
        for numbers in digits {
            let (mut by_digits, mut by_text) = (ExactSum::default(), ExactSum::default());
            for (units, places) in numbers {
                by_digits.add_units(*units, *places).expect("it fits");
                let value = written((*units).into(), (*places).into());
                by_text.add(&value).expect("it fits");
            }
            assert_eq!(by_digits.decimal(), by_text.decimal(), "{numbers:?}");
            let averages = [by_digits, by_text].map(|sum| sum.average(3).expect("it fits"));
            assert_eq!(averages[0], averages[1], "{numbers:?}");
        }
    }

    #[test]
    fn zeros_at_the_end_take_no_room() {
        let mut large = sum(&["1234567890123456789012345"]);
        let one = (100_000_000_000_000, 14);
        large.add_units(one.0, one.1).expect("it fits");
        assert_eq!(large.decimal().to_json(), r#""1234567890123456789012346""#);
        let mut small = ExactSum::default();
        small.add_units(one.0, one.1).expect("it fits");
        small.add_units(0, 60).expect("it is nothing");
        let large = Value::Decimal(Decimal::parse("1234567890123456789012345").expect("one"));
        small.add(&large).expect("it fits");
        small.add_units(25, 2).expect("it fits");
        assert_eq!(
            small.decimal().to_json(),
            r#""1234567890123456789012346.25""#
        );
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let nines = "9".repeat(38);
        let mut most = sum(&[&nines]);
        let error = most
            .add(&Value::Decimal(Decimal::parse(&nines).expect("a decimal")))
            .expect_err("too long");
        assert!(error.is("too_large"), "{error:?}");
    }
}
