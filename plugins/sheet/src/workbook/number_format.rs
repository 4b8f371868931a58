//! Number formats of XLSX: which section of one a value is shown by, and whether that section shows a date.

use calamine::{Data, ExcelDateTime, ExcelDateTimeType, Style};

use super::time;

/// A section of a number format, such as `yyyy-mm-dd` of `[>100]yyyy-mm-dd;General`.
#[derive(Clone, Copy, Default)]
struct FormatSection<'f> {
    code: &'f str,
    condition: Option<SectionCondition>,
    kind: SectionKind,
    /// The section is one of texts: it has an `@`.
    is_text: bool,
}

/// What a section shows a number as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SectionKind {
    /// Words alone, or nothing.
    #[default]
    Words,
    Number,
    Date,
    /// Hours, minutes or seconds in brackets, which are not limited to those of a day.
    Duration,
}

/// A comparison in brackets: `[>=100]`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SectionCondition {
    relation: LimitRelation,
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum LimitRelation {
    Less,
    AtMost,
    Equal,
    Other,
    AtLeast,
    Greater,
}

/// Returns what a number is in a cell of this style: a date or a time of day, a duration, or the number. `days` is the number if the
/// first section of its format is one of dates.
pub(super) fn shown_value(
    number: f64,
    days: Option<ExcelDateTime>,
    style: Option<&Style>,
    from_1904: bool,
) -> Data {
    let format = style.and_then(|style| style.number_format.as_ref());
    let shown = match format {
        Some(format) => {
            let code = time::code_of(format.format_id, &format.format_code, number);
            shown_days(number, days, code, from_1904).map(|(days, code)| (days, Some(code)))
        }
        None => days.map(|days| (days, None)),
    };
    match shown {
        Some((days, code)) => time::from_days(days, code, from_1904),
        None => Data::Float(number),
    }
}

/// Returns the number as days, with the section that shows it, if that is one of dates or durations.
fn shown_days(
    number: f64,
    days: Option<ExcelDateTime>,
    format: &str,
    from_1904: bool,
) -> Option<(ExcelDateTime, &str)> {
    // One section shows all numbers.
    if !format.contains([';', '<', '>', '=']) {
        return days.map(|days| (days, format));
    }
    let (sections, count) = sections_of(format);
    let sections = &sections[..count];
    let mut section = shown_by(number, sections)?;
    if section.kind == SectionKind::Words {
        // Words in place of a value, such as a dash for zero, leave it what the other values of the format are.
        section = sections
            .iter()
            .find(|section| section.kind != SectionKind::Words)?;
    }
    let kind = match section.kind {
        SectionKind::Date => ExcelDateTimeType::DateTime,
        SectionKind::Duration => ExcelDateTimeType::TimeDelta,
        SectionKind::Number | SectionKind::Words => return None,
    };
    Some((ExcelDateTime::new(number, kind, from_1904), section.code))
}

/// Returns the section that shows a number: by the conditions if there are some, or else by its sign. `None` if it meets no
/// condition and no section is for the rest.
fn shown_by<'s, 'f>(
    number: f64,
    sections: &'s [FormatSection<'f>],
) -> Option<&'s FormatSection<'f>> {
    // The last section is one of texts if it is the fourth or has their sign.
    let numeric = match sections {
        [numeric @ .., last] if sections.len() == 4 || last.is_text => numeric,
        all => all,
    };
    let meets = |section: &&FormatSection<'_>| {
        section
            .condition
            .is_some_and(|condition| condition.is_met(number))
    };
    if let Some(section) = numeric.iter().find(meets) {
        return Some(section);
    }
    let rest = |section: &FormatSection<'_>| section.condition.is_none();
    match numeric {
        // Without a condition, three sections are those of positive and negative numbers and of zero.
        [first, _, _] if rest(first) && number > 0.0 => Some(first),
        [_, second, _] if rest(second) && number < 0.0 => Some(second),
        [first, second] if rest(first) && (!rest(second) || number >= 0.0) => Some(first),
        _ => numeric.iter().rfind(|section| rest(section)),
    }
}

/// Returns the sections of a format, of which there are at most four.
fn sections_of(format: &str) -> ([FormatSection<'_>; 4], usize) {
    let mut sections = [FormatSection::default(); 4];
    let mut rest = Some(format);
    let mut count = 0;
    while let (Some(format), Some(place)) = (rest, sections.get_mut(count)) {
        let (section, behind) = first_section(format);
        *place = section;
        rest = behind;
        count += 1;
    }
    (sections, count)
}

/// Returns the first section of a format, and what is behind its semicolon.
fn first_section(format: &str) -> (FormatSection<'_>, Option<&str>) {
    let mut section = FormatSection::default();
    let mut marks = format.char_indices();
    while let Some((at, mark)) = marks.next() {
        match mark {
            ';' => {
                section.code = &format[..at];
                return (section, Some(&format[at + 1..]));
            }
            // Literal text.
            '"' => drop(marks.by_ref().find(|(_, mark)| *mark == '"')),
            '\\' | '_' | '*' => drop(marks.next()),
            '[' => {
                let end = marks.by_ref().find(|(_, mark)| *mark == ']');
                let end = end.map_or(format.len(), |(end, _)| end);
                section.note_bracket(&format[at + 1..end]);
            }
            '@' => section.is_text = true,
            'd' | 'D' | 'm' | 'M' | 'y' | 'Y' | 'h' | 'H' | 's' | 'S' => {
                section.note_kind(SectionKind::Date);
            }
            // A placeholder of a digit, or the first letter of `General`. Seconds have such digits behind them.
            '0' | '#' | '?' | 'g' | 'G' if section.kind == SectionKind::Words => {
                section.kind = SectionKind::Number;
            }
            _ => {}
        }
    }
    section.code = format;
    (section, None)
}

impl FormatSection<'_> {
    /// Takes in what is in brackets: a condition, `h` of a duration, or a colour, a currency or a language.
    fn note_bracket(&mut self, text: &str) {
        let is_unit = |unit: char| {
            !text.is_empty() && text.chars().all(|mark| mark.eq_ignore_ascii_case(&unit))
        };
        if ['h', 'm', 's'].into_iter().any(is_unit) {
            self.note_kind(SectionKind::Duration);
        } else if let Some(condition) = SectionCondition::parse(text) {
            self.condition = Some(condition);
        }
    }

    /// Takes in a sign of dates. The first one says which kind it is, and those of numbers yield to it.
    fn note_kind(&mut self, kind: SectionKind) {
        if matches!(self.kind, SectionKind::Words | SectionKind::Number) {
            self.kind = kind;
        }
    }
}

impl SectionCondition {
    fn parse(text: &str) -> Option<Self> {
        let signs = [
            ("<=", LimitRelation::AtMost),
            (">=", LimitRelation::AtLeast),
            ("<>", LimitRelation::Other),
            ("<", LimitRelation::Less),
            (">", LimitRelation::Greater),
            ("=", LimitRelation::Equal),
        ];
        signs.into_iter().find_map(|(sign, relation)| {
            let limit = text.trim().strip_prefix(sign)?.trim().parse().ok()?;
            Some(Self { relation, limit })
        })
    }

    fn is_met(self, number: f64) -> bool {
        match self.relation {
            LimitRelation::Less => number < self.limit,
            LimitRelation::AtMost => number <= self.limit,
            LimitRelation::Equal => number == self.limit,
            LimitRelation::Other => number != self.limit,
            LimitRelation::AtLeast => number >= self.limit,
            LimitRelation::Greater => number > self.limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_of_a_value_says_whether_it_is_a_date() {
        use ExcelDateTimeType::{DateTime, TimeDelta};
        for (format, number, expected) in [
            (
                "[>100]yyyy-mm-dd;General",
                45000.0,
                Some((DateTime, "[>100]yyyy-mm-dd")),
            ),
            ("[>100]yyyy-mm-dd;General", 5.0, None),
            ("[<100]General;yyyy-mm-dd", 5.0, None),
            (
                "[<100]General;yyyy-mm-dd",
                45000.0,
                Some((DateTime, "yyyy-mm-dd")),
            ),
            ("[>100]yyyy-mm-dd", 5.0, None),
            ("[<1]0;[<60]h:mm;[h]:mm", 0.5, None),
            ("[<1]0;[<60]h:mm;[h]:mm", 1.5, Some((DateTime, "[<60]h:mm"))),
            ("[<1]0;[<60]h:mm;[h]:mm", 60.0, Some((TimeDelta, "[h]:mm"))),
            // Without a condition, the second section is that of negative numbers and the third of the rest.
            ("[>100]yyyy;0;[h]:mm", -1.0, None),
            ("[>100]yyyy;0;[h]:mm", 1.0, Some((TimeDelta, "[h]:mm"))),
            ("[>100]0;[<50]0", 70.0, None),
            // Signs, with and without a section of texts.
            ("yyyy-mm-dd;@", -1.0, Some((DateTime, "yyyy-mm-dd"))),
            (
                "yyyy-mm-dd;[Red]0;General;@",
                45000.0,
                Some((DateTime, "yyyy-mm-dd")),
            ),
            ("yyyy-mm-dd;[Red]0;General;@", -3.0, None),
            ("yyyy-mm-dd;[Red]0;General;@", 0.0, None),
            ("0;-0;h:mm;@", 0.0, Some((DateTime, "h:mm"))),
            ("0;[Red]-[h]:mm", -0.5, Some((TimeDelta, "[Red]-[h]:mm"))),
            // Words and blanks in place of a value.
            ("[h]:mm;[=0]\\-", -0.5, Some((TimeDelta, "[h]:mm"))),
            ("[h]:mm;[=0]\\-", 0.0, Some((TimeDelta, "[h]:mm"))),
            ("yyyy-mm-dd;;", 0.0, Some((DateTime, "yyyy-mm-dd"))),
            (
                "\"due \"yyyy;\"late\";\"d\";@",
                0.0,
                Some((DateTime, "\"due \"yyyy")),
            ),
            ("[=1]\"yes\";[=0]\"no\";General", 1.0, None),
            (";;;", 45000.0, None),
            // Semicolons and signs of dates that are none.
            ("0\";\"0;\"days\"", 5.0, None),
            ("#,##0.00\\ _M\"H\"_);[Red]#,##0.00\\ _M\"S\"_)", -5.0, None),
            ("[$-409]d-mmm;[$USD-409]0", -5.0, None),
            (
                "[$-409]d-mmm;[$USD-409]0",
                5.0,
                Some((DateTime, "[$-409]d-mmm")),
            ),
            ("[>=1]mm:ss.00;[s].00", 0.5, Some((TimeDelta, "[s].00"))),
        ] {
            let shown = shown_days(number, None, format, false);
            let shown = shown.map(|(days, section)| {
                (
                    if days.is_duration() {
                        TimeDelta
                    } else {
                        DateTime
                    },
                    section,
                )
            });
            assert_eq!(shown, expected, "{format} {number}");
        }
    }
}
