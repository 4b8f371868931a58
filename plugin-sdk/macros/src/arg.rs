//! `#[arg(…)]` on a parameter or a field.

use proc_macro2::Span;
use syn::{
    Attribute, Expr, Ident, LitInt, LitStr, Token,
    meta::ParseNestedMeta,
    parse::{Parse, ParseStream},
};

use crate::{
    docs,
    literal::JsonLiteral,
    mistakes::{MacroErrors, new_key, unknown},
};

const KEYS: [&str; 15] = [
    "min_len",
    "max_len",
    "gt",
    "lt",
    "ge",
    "le",
    "pattern",
    "format",
    "default",
    "required",
    "title",
    "description",
    "examples",
    "positional",
    "option",
];

/// A key and its value.
pub(crate) struct KeyedValue<T> {
    pub(crate) key: Ident,
    pub(crate) value: T,
}

#[derive(Default)]
pub(crate) struct ArgKeys {
    pub(crate) min_len: Option<KeyedValue<u64>>,
    pub(crate) max_len: Option<KeyedValue<u64>>,
    pub(crate) gt: Option<KeyedValue<JsonLiteral>>,
    pub(crate) lt: Option<KeyedValue<JsonLiteral>>,
    pub(crate) ge: Option<KeyedValue<JsonLiteral>>,
    pub(crate) le: Option<KeyedValue<JsonLiteral>>,
    pub(crate) pattern: Option<KeyedValue<LitStr>>,
    pub(crate) format: Option<KeyedValue<LitStr>>,
    /// The default; `None` inside means the type's own `Default`.
    pub(crate) default: Option<KeyedValue<Option<Expr>>>,
    pub(crate) required: Option<Ident>,
    pub(crate) title: Option<KeyedValue<LitStr>>,
    /// The text of the `///` lines, unless `description` gives one.
    pub(crate) description: Option<String>,
    pub(crate) examples: Option<JsonLiteral>,
    pub(crate) positional: Option<Ident>,
    pub(crate) option: Option<KeyedValue<CliOption>>,
}

/// `option(alias = "-e", metavar = "ENV")`.
#[derive(Default)]
pub(crate) struct CliOption {
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) metavar: Option<LitStr>,
}

/// A number with an optional sign.
struct SignedLiteral(JsonLiteral);

impl Parse for SignedLiteral {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let span = input.span();
        let expression: Expr = input.parse()?;
        let literal =
            JsonLiteral::from_expression(&expression).filter(|literal| literal.number.is_some());
        literal
            .map(Self)
            .ok_or_else(|| syn::Error::new(span, "write a number here"))
    }
}

impl ArgKeys {
    /// Reads the attributes of a parameter or a field.
    pub(crate) fn read(attributes: &[Attribute], mistakes: &mut MacroErrors) -> Self {
        let mut arg = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("arg"))
        {
            let read = attribute.parse_nested_meta(|meta| arg.key(&meta, &mut seen));
            if let Err(error) = read {
                mistakes.push(error);
            }
        }
        if arg.description.is_none() {
            arg.description = docs::text(attributes);
        }
        arg.contradictions(mistakes);
        arg
    }

    fn key(&mut self, meta: &ParseNestedMeta<'_>, seen: &mut Vec<String>) -> syn::Result<()> {
        let key = new_key(meta, "#[arg(…)]", &KEYS, seen)?;
        match key.to_string().as_str() {
            "min_len" => self.min_len = Some(read_length(key, meta)?),
            "max_len" => self.max_len = Some(read_length(key, meta)?),
            "gt" => self.gt = Some(read_number(key, meta)?),
            "lt" => self.lt = Some(read_number(key, meta)?),
            "ge" => self.ge = Some(read_number(key, meta)?),
            "le" => self.le = Some(read_number(key, meta)?),
            "pattern" => {
                self.pattern = Some(KeyedValue {
                    key,
                    value: pattern(meta)?,
                })
            }
            "format" => {
                self.format = Some(KeyedValue {
                    key,
                    value: meta.value()?.parse()?,
                })
            }
            "default" => {
                let value = if meta.input.peek(Token![=]) {
                    Some(meta.value()?.parse()?)
                } else {
                    None
                };
                self.default = Some(KeyedValue { key, value });
            }
            "required" => self.required = Some(key),
            "title" => {
                self.title = Some(KeyedValue {
                    key,
                    value: meta.value()?.parse()?,
                })
            }
            "description" => self.description = Some(meta.value()?.parse::<LitStr>()?.value()),
            "examples" => self.examples = Some(read_examples(meta)?),
            "positional" => self.positional = Some(key),
            _ => {
                self.option = Some(KeyedValue {
                    value: cli_option(meta)?,
                    key,
                })
            }
        }
        Ok(())
    }

    /// Reports keys that exclude each other, whatever the type is.
    fn contradictions(&self, mistakes: &mut MacroErrors) {
        if let (Some(least), Some(most)) = (&self.min_len, &self.max_len)
            && least.value > most.value
        {
            let message = format!(
                "`max_len = {}` is below `min_len = {}`: no value could be given",
                most.value, least.value
            );
            mistakes.add(&most.key, message);
        }
        let lower = [("ge", &self.ge), ("gt", &self.gt)]
            .into_iter()
            .filter_map(|(name, bound)| Some((name, bound.as_ref()?)));
        for (lower_name, lower) in lower {
            let upper = [("le", &self.le), ("lt", &self.lt)];
            for (upper_name, upper) in upper
                .into_iter()
                .filter_map(|(name, bound)| Some((name, bound.as_ref()?)))
            {
                let (low, high) = (
                    lower.value.number.unwrap_or_default(),
                    upper.value.number.unwrap_or_default(),
                );
                let exclusive = lower_name == "gt" || upper_name == "lt";
                if low > high || (exclusive && low == high) {
                    let message = format!(
                        "`{upper_name} = {}` excludes everything that `{lower_name} = {}` allows: no value could be given",
                        upper.value.json, lower.value.json
                    );
                    mistakes.add(&upper.key, message);
                }
            }
        }
        for (one, other) in [(&self.ge, &self.gt), (&self.le, &self.lt)] {
            if let (Some(one), Some(other)) = (one, other) {
                mistakes.add(
                    &other.key,
                    format!("`{}` excludes `{}`: write one of them", other.key, one.key),
                );
            }
        }
        if let (Some(required), Some(_)) = (&self.required, &self.default) {
            mistakes
                .add(required, "a required parameter is never left out, so `default` has no use: write one of them");
        }
        if let (Some(_), Some(option)) = (&self.positional, &self.option) {
            mistakes.add(
                &option.key,
                "a positional argument has no flag: write `positional` or `option(…)`",
            );
        }
        self.default_outside(mistakes);
    }

    /// Reports a literal default that the other constraints refuse.
    fn default_outside(&self, mistakes: &mut MacroErrors) {
        let Some(KeyedValue {
            value: Some(expression),
            ..
        }) = &self.default
        else {
            return;
        };
        let Some(literal) = JsonLiteral::from_expression(expression) else {
            return;
        };
        if let Some(number) = literal.number {
            type Holds = fn(f64, f64) -> bool;
            let bounds: [(&Option<KeyedValue<JsonLiteral>>, Holds); 4] = [
                (&self.ge, |number, bound| number >= bound),
                (&self.gt, |number, bound| number > bound),
                (&self.le, |number, bound| number <= bound),
                (&self.lt, |number, bound| number < bound),
            ];
            for (bound, holds) in bounds {
                if let Some(bound) = bound
                    && !holds(number, bound.value.number.unwrap_or_default())
                {
                    let message = format!(
                        "the default {} does not meet `{} = {}`",
                        literal.json, bound.key, bound.value.json
                    );
                    mistakes.add(expression, message);
                }
            }
        }
        if let Some(length) = literal.length {
            if let Some(least) = self.min_len.as_ref().filter(|least| length < least.value) {
                mistakes.add(
                    expression,
                    format!("the default is shorter than `min_len = {}`", least.value),
                );
            }
            if let Some(most) = self.max_len.as_ref().filter(|most| length > most.value) {
                mistakes.add(
                    expression,
                    format!("the default is longer than `max_len = {}`", most.value),
                );
            }
        }
    }

    /// Refuses what only a parameter of a tool can have.
    pub(crate) fn no_command_line(&self, mistakes: &mut MacroErrors) {
        let message =
            "a field has no place on the command line: write this on a parameter of the tool";
        if let Some(positional) = &self.positional {
            mistakes.add(positional, message);
        }
        if let Some(option) = &self.option {
            mistakes.add(&option.key, message);
        }
    }
}

fn read_length(key: Ident, meta: &ParseNestedMeta<'_>) -> syn::Result<KeyedValue<u64>> {
    let value = meta.value()?.parse::<LitInt>()?.base10_parse()?;
    Ok(KeyedValue { key, value })
}

fn read_number(key: Ident, meta: &ParseNestedMeta<'_>) -> syn::Result<KeyedValue<JsonLiteral>> {
    let value = meta.value()?.parse::<SignedLiteral>()?.0;
    Ok(KeyedValue { key, value })
}

fn read_examples(meta: &ParseNestedMeta<'_>) -> syn::Result<JsonLiteral> {
    let expression: Expr = meta.value()?.parse()?;
    let literal = JsonLiteral::from_expression(&expression)
        .filter(|literal| matches!(expression, Expr::Array(_)) && literal.length.is_some());
    let wrong = || {
        syn::Error::new_spanned(
            &expression,
            "write a list of literals: `examples = [\"a\", \"b\"]`",
        )
    };
    literal.ok_or_else(wrong)
}

/// Reads a regular expression that the gateway's checks can run: it has no look-around and no back-references.
fn pattern(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    let pattern: LitStr = meta.value()?.parse()?;
    let Err(error) = regex_syntax::Parser::new().parse(&pattern.value()) else {
        return Ok(pattern);
    };
    let text = error.to_string();
    let why = text
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .trim()
        .to_owned();
    let help = if why.contains("look-around") {
        ": write the pattern without it, and check the rest in the function"
    } else if why.contains("backreferences") {
        ": write the pattern without them, and check the rest in the function"
    } else {
        ""
    };
    Err(syn::Error::new(
        pattern.span(),
        format!("this pattern cannot be used: {why}{help}"),
    ))
}

fn cli_option(meta: &ParseNestedMeta<'_>) -> syn::Result<CliOption> {
    const KEYS: [&str; 2] = ["alias", "metavar"];
    let mut option = CliOption::default();
    meta.parse_nested_meta(|meta| {
        let name = meta
            .path
            .get_ident()
            .map(ToString::to_string)
            .unwrap_or_default();
        match name.as_str() {
            "alias" => {
                let alias: LitStr = meta.value()?.parse()?;
                is_alias(&alias)?;
                if option
                    .aliases
                    .iter()
                    .any(|earlier| earlier.value() == alias.value())
                {
                    return Err(syn::Error::new(
                        alias.span(),
                        "this alias is given twice: write it once",
                    ));
                }
                option.aliases.push(alias);
            }
            "metavar" if option.metavar.is_some() => {
                return Err(meta.error("`metavar` is given twice: write it once"));
            }
            "metavar" => option.metavar = Some(meta.value()?.parse()?),
            _ => return Err(meta.error(unknown(&name, "option(…)", &KEYS))),
        }
        Ok(())
    })?;
    Ok(option)
}

/// Checks that an alias has the form `-e` or `--env`.
fn is_alias(alias: &LitStr) -> syn::Result<()> {
    let text = alias.value();
    let word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphanumeric())
            && word
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    let good = match text.strip_prefix("--") {
        Some(long) => long.len() > 1 && word(long),
        None => text
            .strip_prefix('-')
            .is_some_and(|short| short.len() == 1 && word(short)),
    };
    if good {
        return Ok(());
    }
    let bare = text.trim_start_matches('-');
    let dashes = if bare.chars().count() == 1 { "-" } else { "--" };
    Err(syn::Error::new(
        alias.span(),
        format!("an alias is a flag: write `alias = \"{dashes}{bare}\"`"),
    ))
}

/// Returns the aliases of a flag with their places, to check that two parameters do not share one.
pub(crate) fn aliases(arg: &ArgKeys) -> Vec<(String, Span)> {
    let option = arg.option.iter().flat_map(|option| &option.value.aliases);
    option.map(|alias| (alias.value(), alias.span())).collect()
}
