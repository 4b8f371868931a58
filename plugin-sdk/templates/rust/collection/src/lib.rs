//! An adapter: the numbers up to a bound, as a collection.

use weir_plugin_sdk::adapter::parse_settings;
use weir_plugin_sdk::matches::Matcher;
use weir_plugin_sdk::order::{bad_cursor, decode_cursor, encode_cursor};
use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::serde_json::{self, Map, json};
use weir_plugin_sdk::shape::Summaries;
use weir_plugin_sdk::summary::Summarizer;
use weir_plugin_sdk::{
    Adapter, Condition, Error, Field, Page, Query, Shape, SummaryPage, SummaryQuery, Type, Value, Zone,
};

/// An open collection: its bound, and its shape as the contract has it.
pub struct Numbers {
    up_to: i128,
    shape: Shape,
}

impl Adapter for Numbers {
    const NAME: &'static str = "{{name}}";

    fn settings_schema() -> serde_json::Value {
        json!({ "type": "object", "properties": { "up_to": { "type": "integer" } }, "required": ["up_to"] })
    }

    fn describe(settings: &str) -> Result<Shape, Error> {
        up_to(settings)?;
        let mut shape = Shape::new("numbers");
        shape.fields = vec![Field::new("number", Type::Integer), Field::new("square", Type::Integer)];
        shape.key = vec!["number".to_owned()];
        shape.capabilities.read = true;
        let exact = ["equals", "not-equals", "one-of", "at-least", "at-most"];
        shape.capabilities.matches.insert("*".to_owned(), exact.map(str::to_owned).to_vec());
        shape.capabilities.order = vec!["number".to_owned()];
        shape.capabilities.summaries = Summaries::All;
        Ok(shape)
    }

    fn open(settings: &str, shape: &Shape) -> Result<Self, Error> {
        Ok(Self { up_to: up_to(settings)?, shape: shape.clone() })
    }

    fn read(&self, query: &Query) -> Result<Page, Error> {
        let matchers = self.matchers(&query.conditions)?;
        // "-number" asks for the largest first; `describe` offers no other order.
        let is_descending = query.order.first().is_some_and(|by| by.descending);
        let step: i128 = if is_descending { -1 } else { 1 };
        let first = match &query.cursor {
            None if is_descending => self.up_to,
            None => 1,
            Some(cursor) => match decode_cursor(cursor, &[self.field("number")?], &Zone::utc())?[..] {
                [Value::Integer(last)] => last + step,
                _ => return Err(bad_cursor()),
            },
        };
        let mut records = Records::new();
        let numbers = std::iter::successors(Some(first), |number| Some(number + step));
        for number in numbers.take_while(|number| (1..=self.up_to).contains(number)) {
            if !meets(number, &matchers) {
                continue;
            }
            if records.count() == query.limit {
                return Ok(Page { records: records.finish(), next: Some(encode_cursor(&[Value::Integer(number - step)])) });
            }
            records.push(["number", "square"].map(|column| (column, value(number, column))));
        }
        Ok(Page { records: records.finish(), next: None })
    }

    /// Counts, and sums of groups: in one pass, by the SDK. A database would be asked instead.
    fn summarize(&self, query: &SummaryQuery) -> Result<SummaryPage, Error> {
        let (matchers, zone) = (self.matchers(&query.conditions)?, Zone::utc());
        let mut summarizer = Summarizer::new(query, &self.shape, &zone)?;
        for number in (1..=self.up_to).filter(|number| meets(*number, &matchers)) {
            summarizer.add(|field| value(number, &field.key))?;
        }
        summarizer.finish()
    }
}

impl Numbers {
    fn field(&self, column: &str) -> Result<&Field, Error> {
        self.shape.field(column).ok_or_else(|| Error::invalid("There is no such column.").field(column))
    }

    fn matchers(&self, conditions: &[Condition]) -> Result<Vec<(String, Matcher)>, Error> {
        let matcher = |condition: &Condition| {
            let field = self.field(&condition.column)?;
            Ok((condition.column.clone(), Matcher::new(condition, field, &Zone::utc())?))
        };
        conditions.iter().map(matcher).collect()
    }
}

fn value(number: i128, column: &str) -> Value<'static> {
    Value::Integer(if column == "number" { number } else { number * number })
}

fn meets(number: i128, matchers: &[(String, Matcher)]) -> bool {
    matchers.iter().all(|(column, matcher)| matcher.matches(&value(number, column)))
}

fn up_to(settings: &str) -> Result<i128, Error> {
    let settings: Map<String, serde_json::Value> = parse_settings(settings)?;
    match settings.get("up_to").and_then(serde_json::Value::as_i64) {
        Some(up_to @ 1..=1_000_000) => Ok(up_to.into()),
        _ => Err(Error::invalid("`up_to` must be a whole number from 1 to 1,000,000.").field("up_to")),
    }
}

weir_plugin_sdk::export!(Numbers);

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugin_sdk::Comparison;
    use weir_plugin_sdk::summary::{SummaryFunction, SummaryMeasure};

    #[test]
    fn it_counts_page_by_page() {
        let settings = r#"{"up_to": 5}"#;
        let numbers = Numbers::open(settings, &Numbers::describe(settings).unwrap()).unwrap();
        let odd_ones = vec![Condition::new("number", Comparison::OneOf, json!([1, 3, 5]))];
        let page = numbers.read(&Query { conditions: odd_ones.clone(), limit: 2, ..Query::default() }).unwrap();
        assert_eq!(page.records, r#"[{"number":1,"square":1},{"number":3,"square":9}]"#);
        let rest = Query { conditions: odd_ones, limit: 2, cursor: page.next, ..Query::default() };
        assert_eq!(numbers.read(&rest).unwrap().records, r#"[{"number":5,"square":25}]"#);
    }

    #[test]
    fn it_sums() {
        let settings = r#"{"up_to": 5}"#;
        let numbers = Numbers::open(settings, &Numbers::describe(settings).unwrap()).unwrap();
        let sum = SummaryMeasure {
            name: "sum(square)".to_owned(),
            function: SummaryFunction::Sum,
            column: Some("square".to_owned()),
        };
        let query = SummaryQuery { measures: vec![sum], limit: 1, ..SummaryQuery::default() };
        assert_eq!(numbers.summarize(&query).unwrap().records, r#"[{"sum(square)":55}]"#);
    }
}
