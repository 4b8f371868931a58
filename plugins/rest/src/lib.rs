//! JSON over HTTP as collections: a list, one record by its path, create, update, delete, and named operations.
//!
//! The settings name the places of the data ([`settings`]). Conditions and order are judged here, with the value table, over
//! the pages of the service ([`pages`], [`read`]), so they mean the same as everywhere; a service that sorts on its own
//! is read no further than a page needs. The decisions are in `docs/adapters/rest.md`.

mod answer;
mod body;
mod describe;
mod operation;
mod pages;
mod parameters;
mod read;
mod request;
mod settings;
mod words;
mod write;

#[cfg(test)]
mod tests;

use weir_plugin_sdk::serde_json::{self, json};
use weir_plugin_sdk::{Adapter, Change, Error, Page, Query, Shape, Zone};

use settings::RestSettings;

/// An open collection.
pub struct RestAdapter {
    settings: RestSettings,
    shape: Shape,
    zone: Zone,
}

impl Adapter for RestAdapter {
    const NAME: &'static str = "rest";
    const REQUESTS: &'static [&'static str] = &["http"];

    fn settings_schema() -> serde_json::Value {
        json!({
            "type": "object",
            "properties": {
                "connection": { "type": "string", "description": "Name of the HTTP connection the operator granted." },
                "fields": { "type": "object", "description": "The record: name to type, or to {type, nullable, description, at}." },
                "sample": { "type": "boolean", "description": "Take the record from what the list answers now." },
                "openapi": { "type": "object", "description": "Take the record from {path, schema} of an OpenAPI document." },
                "key": { "type": "array", "items": { "type": "string" }, "description": "The key; `id` without it, where there is one." },
                "headers": { "type": "object", "description": "Headers that go with every request." },
                "errors": { "type": "string", "enum": ["shown", "hidden"], "description": "Whether agents read the words in which the service refuses a request; shown without it." },
                "list": { "type": "object", "description": "{path, records, query, filters, sorted_by, pagination}" },
                "get": { "type": "object", "description": "{path, record}: one record, by a path with {key}." },
                "create": { "type": "object", "description": "{path, method, record}" },
                "update": { "type": "object", "description": "{path, method, record}: PATCH changes, PUT replaces." },
                "delete": { "type": "object", "description": "{path, method, record}" },
                "operations": { "type": "object", "description": "Name to {method, path, effect, params, content_type, accept, returns, record, records, pagination}." }
            },
            "required": ["connection"],
            "additionalProperties": false
        })
    }

    fn describe(settings: &str) -> Result<Shape, Error> {
        let settings = RestSettings::parse(settings)?;
        describe::describe(&settings).map_err(|error| answer::with_words(error, &settings))
    }

    fn open(settings: &str, shape: &Shape) -> Result<Self, Error> {
        Ok(Self {
            settings: RestSettings::parse(settings)?,
            shape: shape.clone(),
            zone: Zone::from_shape(shape)?,
        })
    }

    fn read(&self, query: &Query) -> Result<Page, Error> {
        read::read(self, query).map_err(|error| answer::with_words(error, &self.settings))
    }

    fn write(&self, change: &Change) -> Result<String, Error> {
        write::write(self, change).map_err(|error| answer::with_words(error, &self.settings))
    }
}

weir_plugin_sdk::export!(RestAdapter);
