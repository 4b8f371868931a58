//! Numbers of a schema, compared exactly.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whole numbers beyond this are left to doubles.
const WHOLE_MAX: f64 = 1e30;

/// A bound as a number: an integer if it is whole, otherwise a double.
#[derive(Clone, Copy, Debug)]
pub(super) enum ExactNumber {
    Whole(i128),
    Fraction(f64),
}

impl ExactNumber {
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        let Value::Number(number) = value else {
            return None;
        };
        if let Some(whole) = whole(number) {
            return Some(Self::Whole(whole));
        }
        number.as_f64().map(Self::Fraction)
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Fraction(fraction) => fraction,
        }
    }

    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(one), Self::Whole(two)) => one.cmp(&two),
            _ => self.as_f64().total_cmp(&other.as_f64()),
        }
    }
}

/// One end of a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeBound {
    pub at: ExactNumber,
    pub exclusive: bool,
}

impl RangeBound {
    /// Returns the bound as the first whole number inside: for integers, an exclusive 0 and a 1 are the same minimum.
    pub(super) fn inside(self, upwards: bool) -> Self {
        let at = match (self.at, self.exclusive) {
            (ExactNumber::Whole(whole), true) if upwards => ExactNumber::Whole(whole + 1),
            (ExactNumber::Whole(whole), true) => ExactNumber::Whole(whole - 1),
            (ExactNumber::Whole(whole), false) => ExactNumber::Whole(whole),
            (ExactNumber::Fraction(fraction), _) if fraction.abs() < WHOLE_MAX => {
                ExactNumber::Whole(if upwards {
                    fraction.ceil()
                } else {
                    fraction.floor()
                } as i128)
            }
            (fraction, _) => {
                return Self {
                    at: fraction,
                    ..self
                };
            }
        };
        Self {
            at,
            exclusive: false,
        }
    }

    /// Returns a whole bound as the first multiple of a step inside: for multiples of 5, a minimum of 1 and one of 5 are the same.
    pub(super) fn on_step(self, step: i128, upwards: bool) -> Self {
        let ExactNumber::Whole(whole) = self.at else {
            return self;
        };
        let at = match (whole.rem_euclid(step), upwards) {
            (0, _) => whole,
            (over, true) => whole - over + step,
            (over, false) => whole - over,
        };
        Self {
            at: ExactNumber::Whole(at),
            ..self
        }
    }

    /// Compares two bounds of the same end by how much is left inside.
    pub(super) fn compare(self, other: Self, upwards: bool) -> Ordering {
        let by_place = self.at.compare(other.at);
        let by_place = if upwards {
            by_place
        } else {
            by_place.reverse()
        };
        by_place.then(self.exclusive.cmp(&other.exclusive))
    }
}

/// A positive decimal, as digits and places after the point.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecimalStep {
    digits: i128,
    places: u32,
}

impl DecimalStep {
    pub(super) const ONE: Self = Self {
        digits: 1,
        places: 0,
    };

    /// Reads a step. Returns `None` if it is not a positive number, or has too many digits to calculate with.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        let Value::Number(number) = value else {
            return None;
        };
        if let Some(digits) = whole(number) {
            return (digits > 0 && digits < 1 << 53).then_some(Self { digits, places: 0 });
        }
        let text = number.to_string();
        let (front, behind) = text.split_once('.')?;
        if behind.contains(['e', 'E']) || behind.len() > 15 || front.len() > 12 {
            return None;
        }
        let digits: i128 = format!("{front}{behind}").parse().ok()?;
        (digits > 0).then_some(Self {
            digits,
            places: u32::try_from(behind.len()).ok()?,
        })
    }

    pub(super) fn is_whole(self) -> bool {
        self.is_multiple_of(Self::ONE)
    }

    pub(super) fn is_multiple_of(self, other: Self) -> bool {
        let (one, two) = self.scaled(other);
        one % two == 0
    }

    /// Returns the least common multiple.
    pub(super) fn common(self, other: Self) -> Self {
        let places = self.places.max(other.places);
        let (one, two) = self.scaled(other);
        Self {
            digits: one / greatest_common_divisor(one, two) * two,
            places,
        }
    }

    /// Returns the distance of its whole multiples.
    pub(super) fn whole_step(self) -> i128 {
        let whole = self.common(Self::ONE);
        whole.digits / 10_i128.pow(whole.places)
    }

    fn scaled(self, other: Self) -> (i128, i128) {
        let places = self.places.max(other.places);
        let scale = |step: Self| step.digits * 10_i128.pow(places - step.places);
        (scale(self), scale(other))
    }
}

/// Reads a count, such as that of `minLength`.
pub fn count(value: &Value) -> Option<u64> {
    match ExactNumber::from_value(value)? {
        ExactNumber::Whole(count) => u64::try_from(count).ok(),
        ExactNumber::Fraction(_) => None,
    }
}

fn whole(number: &Number) -> Option<i128> {
    if let Some(whole) = number.as_i64() {
        return Some(whole.into());
    }
    if let Some(whole) = number.as_u64() {
        return Some(whole.into());
    }
    let double = number.as_f64()?;
    (double.fract() == 0.0 && double.abs() < WHOLE_MAX).then_some(double as i128)
}

fn greatest_common_divisor(one: i128, two: i128) -> i128 {
    if two == 0 {
        one
    } else {
        greatest_common_divisor(two, one % two)
    }
}
