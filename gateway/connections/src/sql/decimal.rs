//! Decimals kept as text, compared as the numbers they are.

use std::{borrow::Cow, cmp::Ordering};

/// Compares texts `[+-]digits[.digits]` exactly. Anything else sorts after all numbers, by its bytes, so that the
/// order is total whatever a column contains.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (plain(left), plain(right));
    let (left, right) = (&*left, &*right);
    match (DecimalText::read(left), DecimalText::read(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}

/// Expands the exponent that SQLite writes in large doubles: `1.0e+20` becomes `100000000000000000000`.
fn plain(text: &str) -> Cow<'_, str> {
    let expanded = || {
        let (mantissa, exponent) = text.split_once(['e', 'E'])?;
        let exponent: i32 = exponent
            .parse()
            .ok()
            .filter(|exponent| (-400..=400).contains(exponent))?;
        let (sign, digits) = match mantissa.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", mantissa),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{fraction}");
        let point = whole.len() as i32 + exponent;
        Some(match usize::try_from(point) {
            Err(_) | Ok(0) => format!("{sign}0.{}{all}", "0".repeat(point.unsigned_abs() as usize)),
            Ok(point) if point >= all.len() => {
                format!("{sign}{all}{}", "0".repeat(point - all.len()))
            }
            Ok(point) => format!("{sign}{}.{}", all.get(..point)?, all.get(point..)?),
        })
    };
    if text.contains(['e', 'E']) {
        expanded().map_or(Cow::Borrowed(text), Cow::Owned)
    } else {
        Cow::Borrowed(text)
    }
}

struct DecimalText<'a> {
    negative: bool,
    /// The whole part without leading zeros.
    whole: &'a str,
    /// The fraction without trailing zeros.
    fraction: &'a str,
}

impl<'a> DecimalText<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let numeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !numeric(whole) || !numeric(fraction) {
            return None;
        }
        let (whole, fraction) = (
            whole.trim_start_matches('0'),
            fraction.trim_end_matches('0'),
        );
        Some(Self {
            negative: negative && !(whole.is_empty() && fraction.is_empty()),
            whole,
            fraction,
        })
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let magnitude = || {
            let whole = self
                .whole
                .len()
                .cmp(&other.whole.len())
                .then_with(|| self.whole.cmp(other.whole));
            whole.then_with(|| self.fraction.cmp(other.fraction))
        };
        match (self.negative, other.negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => magnitude(),
            (true, true) => magnitude().reverse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_compare_as_numbers() {
        let ascending = [
            "-100",
            "-99.5",
            "-1.25",
            "-1.2",
            "-0.001",
            "0",
            "0.001",
            "0.1",
            "1",
            "1.05",
            "1.5",
            "9",
            "10",
            "9007199254740992",
            "9007199254740993",
            "123456789012345678901234567890.5",
            "",
            "abc",
        ];
        for (at, left) in ascending.iter().enumerate() {
            for (to, right) in ascending.iter().enumerate() {
                assert_eq!(compare(left, right), at.cmp(&to), "{left} and {right}");
            }
        }
        for (left, right) in [
            ("1.50", "1.5"),
            ("-0", "0"),
            ("007", "7"),
            ("+3", "3.0"),
            (".5", "0.50"),
            ("1.0e+20", "100000000000000000000"),
            ("-1.5e-3", "-0.0015"),
            ("1.25e1", "12.5"),
        ] {
            assert_eq!(compare(left, right), Ordering::Equal, "{left} and {right}");
        }
    }
}
