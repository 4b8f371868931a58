//! Exact decimals of any length, as text.
//!
//! Ours, because the decimal crates hold 28 to 34 digits and a source may hold more; only reading and comparing is needed.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Canonical text `^-?\d+(\.\d+)?$`: no sign on zero, no leading zeros, no zeros at the end of the fraction. A column
/// of two places therefore reads `10` and not `10.00`: SQLite and spreadsheets forget the places, and sources must agree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal<'a>(Cow<'a, str>);

/// The bound on digits: `1e999999999` is short to write and long to hold.
const DIGITS_MAX: usize = 1_000;

impl<'a> Decimal<'a> {
    /// Reads `-12.50`, `+3`, `.5`, `1.5e3`; nothing else. Also `None` if it has more than 1,000 digits.
    pub fn parse(text: &'a str) -> Option<Self> {
        if is_canonical(text) {
            return Some(Self(Cow::Borrowed(text)));
        }
        canonical(text).map(|text| Self(Cow::Owned(text)))
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the decimal with an owned text.
    pub fn into_owned(self) -> Decimal<'static> {
        Decimal(Cow::Owned(self.0.into_owned()))
    }

    /// Returns the decimal with the text of this one.
    pub fn as_borrowed(&self) -> Decimal<'_> {
        Decimal(Cow::Borrowed(&self.0))
    }

    /// Returns the value as an integer, if it is one that fits.
    pub fn to_integer(&self) -> Option<i128> {
        if self.0.contains('.') {
            None
        } else {
            self.0.parse().ok()
        }
    }

    fn parts(&self) -> (bool, &str, &str) {
        let (negative, digits) = match self.0.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, &*self.0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        (negative, whole, fraction)
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (negative, whole, fraction) = self.parts();
        let (other_negative, other_whole, other_fraction) = other.parts();
        if negative != other_negative {
            return if negative {
                Ordering::Less
            } else {
                Ordering::Greater
            };
        }
        // Canonical text: more digits before the point is more, and fractions compare like text.
        let size = (whole.len().cmp(&other_whole.len()))
            .then_with(|| whole.cmp(other_whole))
            .then(fraction.cmp(other_fraction));
        if negative { size.reverse() } else { size }
    }
}

/// Returns `true` for text that `canonical` would leave as it is: the usual case, and free.
fn is_canonical(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let all_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.len() <= DIGITS_MAX
        && all_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(|fraction| all_digits(fraction) && !fraction.ends_with('0'))
        && text != "-0"
}

fn canonical(text: &str) -> Option<String> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], exponent(&rest[at + 1..])?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let significant = digits.trim_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    // The position of the point is counted from the first significant digit.
    let point = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()? + exponent;
    let length = i64::try_from(significant.len()).ok()?;
    if point.unsigned_abs() as usize > DIGITS_MAX || significant.len() > DIGITS_MAX {
        return None;
    }
    let mut out = String::from(if negative { "-" } else { "" });
    if point <= 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', point.unsigned_abs() as usize));
        out.push_str(significant);
    } else if point >= length {
        out.push_str(significant);
        out.extend(std::iter::repeat_n('0', (point - length) as usize));
    } else {
        let (whole, fraction) = significant.split_at(point as usize);
        out.push_str(whole);
        out.push('.');
        out.push_str(fraction);
    }
    Some(out)
}

fn exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || digits.len() > 6 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.strip_prefix('+').unwrap_or(text).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_to_one_canonical_text() {
        for (text, expected) in [
            ("10.00", "10"),
            ("-0", "0"),
            ("-0.00", "0"),
            ("007", "7"),
            ("+3.50", "3.5"),
            (".5", "0.5"),
            ("5.", "5"),
            ("1.5e3", "1500"),
            ("12e-3", "0.012"),
            ("100", "100"),
            ("0.10", "0.1"),
            ("9007199254740993", "9007199254740993"),
            ("1E+2", "100"),
            ("120.5e-1", "12.05"),
        ] {
            assert_eq!(
                Decimal::parse(text).map(|decimal| decimal.as_str().to_owned()),
                Some(expected.into()),
                "{text}"
            );
        }
        for text in [
            "",
            "-",
            ".",
            "1,5",
            "1e",
            "e5",
            "0x1",
            "1 ",
            "1e9999999",
            "1e2000",
            "NaN",
            "--1",
            "1.2.3",
            "é",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn compares_by_value_at_any_length() {
        let sorted = [
            "-1000",
            "-99.5",
            "-0.1",
            "0",
            "0.09",
            "0.1",
            "0.11",
            "9",
            "9.5",
            "10",
            "9007199254740993",
        ];
        for (left_at, left) in sorted.iter().enumerate() {
            for (right_at, right) in sorted.iter().enumerate() {
                let (left, right) = (
                    Decimal::parse(left).unwrap(),
                    Decimal::parse(right).unwrap(),
                );
                assert_eq!(
                    left.cmp(&right),
                    left_at.cmp(&right_at),
                    "{left:?} {right:?}"
                );
            }
        }
    }
}
