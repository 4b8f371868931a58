//! Literals as JSON: defaults, examples and bounds that are known when the macro runs.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Expr, ExprLit, ExprUnary, Lit, UnOp};

/// The kind of a literal, as far as its type matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LiteralKind {
    Text,
    Integer(i128),
    Number,
    Boolean,
    List,
}

/// A literal and its JSON.
pub(crate) struct JsonLiteral {
    pub(crate) sort: LiteralKind,
    pub(crate) json: String,
    /// The characters of a text, the elements of a list.
    pub(crate) length: Option<u64>,
    /// A number's value, for comparisons.
    pub(crate) number: Option<f64>,
    pub(crate) tokens: TokenStream,
}

impl JsonLiteral {
    /// Returns the literal that an expression is, or `None` if it is anything else.
    pub(crate) fn from_expression(expression: &Expr) -> Option<Self> {
        let (sort, json, length, number) = match expression {
            Expr::Lit(ExprLit { lit, .. }) => scalar(lit, false)?,
            Expr::Unary(ExprUnary {
                op: UnOp::Neg(_),
                expr,
                ..
            }) => match &**expr {
                Expr::Lit(ExprLit {
                    lit: lit @ (Lit::Int(_) | Lit::Float(_)),
                    ..
                }) => scalar(lit, true)?,
                _ => return None,
            },
            Expr::Array(array) => {
                let elements: Option<Vec<Self>> =
                    array.elems.iter().map(Self::from_expression).collect();
                let elements = elements?;
                let texts: Vec<&str> = elements
                    .iter()
                    .map(|element| element.json.as_str())
                    .collect();
                (
                    LiteralKind::List,
                    format!("[{}]", texts.join(",")),
                    Some(elements.len() as u64),
                    None,
                )
            }
            Expr::Reference(reference) if matches!(&*reference.expr, Expr::Array(_)) => {
                return Self::from_expression(&reference.expr);
            }
            _ => return None,
        };
        Some(Self {
            sort,
            json,
            length,
            number,
            tokens: expression.to_token_stream(),
        })
    }

    pub(crate) fn span(&self) -> Span {
        self.tokens
            .clone()
            .into_iter()
            .next()
            .map_or_else(Span::call_site, |token| token.span())
    }
}

type Scalar = (LiteralKind, String, Option<u64>, Option<f64>);

fn scalar(literal: &Lit, negative: bool) -> Option<Scalar> {
    let sign = if negative { "-" } else { "" };
    Some(match literal {
        Lit::Str(text) => {
            let text = text.value();
            (
                LiteralKind::Text,
                json_text(&text),
                Some(text.chars().count() as u64),
                None,
            )
        }
        Lit::Char(character) => (
            LiteralKind::Text,
            json_text(&character.value().to_string()),
            Some(1),
            None,
        ),
        Lit::Bool(boolean) => (
            LiteralKind::Boolean,
            boolean.value().to_string(),
            None,
            None,
        ),
        Lit::Int(integer) => {
            let value: i128 = integer.base10_parse().ok()?;
            let value = if negative { -value } else { value };
            (
                LiteralKind::Integer(value),
                value.to_string(),
                None,
                Some(value as f64),
            )
        }
        Lit::Float(float) => {
            let value: f64 = format!("{sign}{}", float.base10_digits()).parse().ok()?;
            if !value.is_finite() {
                return None;
            }
            // `{:?}` keeps a fraction or an exponent, and is JSON.
            (LiteralKind::Number, format!("{value:?}"), None, Some(value))
        }
        _ => return None,
    })
}

/// Returns a text as JSON.
pub(crate) fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
