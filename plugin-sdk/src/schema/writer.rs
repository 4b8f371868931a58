//! Writes schemas: JSON text, keyword by keyword, with `$defs` for types that hold themselves.
//!
//! Our own, because schemas are small and a guest pays for each byte: schemars made a component 139 KB larger, this 15.

use crate::value::write_string;

/// The keywords of the schema that is being written.
type Keywords = Vec<(&'static str, String)>;

/// Writes one schema. A type sets its own keywords; schemas inside are written by [`Writer::inner`].
pub struct Writer {
    /// The schemas that are open, the innermost last.
    open: Vec<Keywords>,
    /// The named types that are being written, by their full names.
    named: Vec<&'static str>,
    /// The types that hold themselves: full name, name in `$defs`, what writes it, and the text once it is written.
    definitions: Vec<Definition>,
    /// The tags of enums that are among the members of the current value, the innermost last.
    tags: Vec<String>,
    output: bool,
}

type Definition = (&'static str, String, fn(&mut Writer), Option<String>);

impl Writer {
    /// Creates a writer for what a caller sends.
    pub fn for_input() -> Self {
        Self {
            open: Vec::new(),
            named: Vec::new(),
            definitions: Vec::new(),
            tags: Vec::new(),
            output: false,
        }
    }

    /// Creates a writer for a tool's answer, in which a field that is printed as null is nullable.
    pub fn for_output() -> Self {
        Self {
            output: true,
            ..Self::for_input()
        }
    }

    /// Returns `true` if the schema is one of answers.
    pub fn is_output(&self) -> bool {
        self.output
    }

    /// Returns the whole schema as JSON, with `$defs` at its end if a type contains itself.
    pub fn whole(mut self, write: impl FnOnce(&mut Writer)) -> String {
        self.open.push(Vec::new());
        write(&mut self);
        // Writing one definition may find the next.
        while let Some(at) = self
            .definitions
            .iter()
            .position(|definition| definition.3.is_none())
        {
            let (full_name, _, write, _) = self.definitions[at];
            self.named.push(full_name);
            let text = self.inner(write);
            self.named.pop();
            self.definitions[at].3 = Some(text);
        }
        if !self.definitions.is_empty() {
            let mut definitions = String::from("{");
            for (_, name, _, text) in &self.definitions {
                member(&mut definitions, name, text.as_deref().unwrap_or("{}"));
            }
            definitions.push('}');
            self.set("$defs", definitions);
        }
        self.close()
    }

    /// Sets a keyword of the schema that is open; `json` is its value.
    pub fn set(&mut self, keyword: &'static str, json: impl Into<String>) {
        let keywords = self
            .open
            .last_mut()
            .expect("a schema is open while a type writes");
        match keywords.iter_mut().find(|(name, _)| *name == keyword) {
            Some((_, value)) => *value = json.into(),
            None => keywords.push((keyword, json.into())),
        }
    }

    /// Sets a keyword to a text.
    pub fn set_text(&mut self, keyword: &'static str, text: &str) {
        self.set(keyword, write_text(text));
    }

    /// Sets a keyword to a whole number.
    pub fn set_number(&mut self, keyword: &'static str, number: i128) {
        // Printing two numbers of 64 bits takes less code than one of 128.
        let text = match (i64::try_from(number), u64::try_from(number)) {
            (Ok(signed), _) => signed.to_string(),
            (_, Ok(unsigned)) => unsigned.to_string(),
            _ => return,
        };
        self.set(keyword, text);
    }

    /// Takes a keyword away again.
    pub fn unset(&mut self, keyword: &str) {
        self.open
            .last_mut()
            .expect("a schema is open while a type writes")
            .retain(|(name, _)| *name != keyword);
    }

    /// Returns the value of a keyword of the schema that is open.
    pub fn get(&self, keyword: &str) -> Option<&str> {
        let keywords = self
            .open
            .last()
            .expect("a schema is open while a type writes");
        keywords
            .iter()
            .find(|(name, _)| *name == keyword)
            .map(|(_, value)| value.as_str())
    }

    /// Returns a schema inside this one, as JSON: `let items = schema.inner(T::write);`.
    pub fn inner(&mut self, write: fn(&mut Writer)) -> String {
        self.inner_with(&mut |schema| write(schema))
    }

    /// Returns a schema inside this one, written by a closure.
    pub fn inner_with(&mut self, write: &mut dyn FnMut(&mut Writer)) -> String {
        let tags = std::mem::take(&mut self.tags);
        self.open.push(Vec::new());
        write(self);
        self.tags = tags;
        self.close()
    }

    /// Returns one alternative of this schema, with the tag of its enum if it has one among its members.
    ///
    /// An alternative with a rule for further members takes the tags of the enums around this schema too.
    pub fn alternative(&mut self, tag: Option<&str>, write: &mut dyn FnMut(&mut Writer)) -> String {
        let around = self.tags.clone();
        self.tags.extend(tag.map(str::to_owned));
        self.open.push(Vec::new());
        write(self);
        self.tags = around;
        if self.get("additionalProperties").is_some() {
            for tag in self.tags.clone() {
                self.set_property(&tag, "{}");
            }
        }
        self.close()
    }

    /// Sets a property, in front of the existing ones.
    pub fn set_property(&mut self, name: &str, json: &str) {
        let mut properties = String::from("{");
        member(&mut properties, name, json);
        match self
            .get("properties")
            .and_then(|known| known.strip_prefix('{'))
        {
            Some("}") | None => properties.push('}'),
            Some(known) => {
                properties.push(',');
                properties.push_str(known);
            }
        }
        self.set("properties", properties);
    }

    /// Writes a type that may hold itself: the first time in place, inside itself as a reference to `$defs`.
    ///
    /// `full_name` distinguishes types (`std::any::type_name`), `name` is the name in `$defs`.
    pub fn named(&mut self, full_name: &'static str, name: &str, write: fn(&mut Writer)) {
        if !self.named.contains(&full_name) {
            self.named.push(full_name);
            write(self);
            self.named.pop();
            return;
        }
        let known = self
            .definitions
            .iter()
            .find(|definition| definition.0 == full_name);
        let name = match known {
            Some(definition) => definition.1.clone(),
            None => {
                let mut unique = name.to_owned();
                let mut count = 1;
                while self
                    .definitions
                    .iter()
                    .any(|definition| definition.1 == unique)
                {
                    count += 1;
                    unique = format!("{name}{count}");
                }
                let name = unique;
                self.definitions
                    .push((full_name, name.clone(), write, None));
                name
            }
        };
        self.set_text("$ref", &format!("#/$defs/{name}"));
    }

    /// Writes the schema of `write` with null as an alternative.
    pub fn nullable(&mut self, write: fn(&mut Writer)) {
        self.open.push(Vec::new());
        write(self);
        let keywords = self.open.last().expect("it was opened above");
        let single = keywords
            .iter()
            .find(|(name, _)| *name == "type")
            .is_some_and(|(_, json)| json.starts_with('"'));
        // An `enum` does not contain null, so allowing its type is not enough there.
        let open = !keywords
            .iter()
            .any(|(name, _)| matches!(*name, "enum" | "const" | "anyOf"));
        if single && open {
            let keywords = self.open.pop().expect("it was opened above");
            for (keyword, json) in keywords {
                self.set(
                    keyword,
                    if keyword == "type" {
                        format!("[{json},\"null\"]")
                    } else {
                        json
                    },
                );
            }
        } else if !self.open.last().expect("it was opened above").is_empty() {
            let inner = self.close();
            self.set("anyOf", format!("[{inner},{{\"type\":\"null\"}}]"));
        } else {
            // Any value: null is one.
            self.open.pop();
        }
    }

    fn close(&mut self) -> String {
        let mut text = String::from("{");
        for (keyword, json) in self.open.pop().expect("each schema is closed once") {
            member(&mut text, keyword, &json);
        }
        text.push('}');
        text
    }
}

fn member(out: &mut String, name: &str, json: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    write_string(name, out);
    out.push(':');
    out.push_str(json);
}

/// Returns a text as JSON.
pub fn write_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(text, &mut out);
    out
}
