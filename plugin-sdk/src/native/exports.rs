//! The functions that a native library answers, by the names of the component interface.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::abi::{Answer, DONE, FAILED, UNKNOWN};
use super::wire;
use crate::error::{Error, Result};
use crate::plugin::{self, Plugin};
use crate::summary::WiredQuery;
use crate::{items, tools};

/// Answers one call. A function that the library has no use for is unknown to it.
pub(super) fn answer<P: Plugin>(function: &[u8], head: &[u8], body: &[u8]) -> Answer {
    let has_collections = !P::adapters().is_empty();
    let has_items = P::items().is_some();
    let has_tools = !P::tools().is_empty() || has_items;
    let result = match function {
        b"about.about" => about::<P>(has_collections, has_tools, has_items),
        b"collections.describe" if has_collections => describe::<P>(head, body),
        b"collections.configure" if has_collections => configure::<P>(head),
        b"collections.read" if has_collections => read(head),
        b"collections.write" if has_collections => write(head),
        b"summaries.summarize" if has_collections => summarize(head),
        b"tools.configure" if has_tools => text(body)
            .and_then(tools::configure)
            .map(|()| done(&(), Vec::new())),
        b"tools.definitions" if has_tools => {
            tools::definitions::<P>().map(|text| done(&(), text.into_bytes()))
        }
        b"tools.call" if has_tools => call::<P>(head, body),
        b"items.definitions" if has_items => item_definitions::<P>(),
        b"items.get" if has_items => get::<P>(head, body),
        _ => {
            return Answer {
                status: UNKNOWN,
                ..Answer::default()
            };
        }
    };
    result.unwrap_or_else(failed)
}

fn about<P: Plugin>(has_collections: bool, has_tools: bool, has_items: bool) -> Result<Answer> {
    let abilities = [
        ("collections", has_collections),
        ("summaries", has_collections),
        ("tools", has_tools),
        ("items", has_items),
    ];
    let interfaces = abilities
        .into_iter()
        .filter(|(_, has)| *has)
        .map(|(name, _)| name.to_owned())
        .collect();
    Ok(done(
        &wire::Interfaces { interfaces },
        plugin::about::<P>().into_bytes(),
    ))
}

fn describe<P: Plugin>(head: &[u8], settings: &[u8]) -> Result<Answer> {
    let wire::Describe { adapter } = parsed(head)?;
    let shape = plugin::describe::<P>(&adapter, text(settings)?)?;
    Ok(done(&(), shape.into_bytes()))
}

fn configure<P: Plugin>(head: &[u8]) -> Result<Answer> {
    let wire::Configure {
        collection,
        adapter,
        settings,
        shape,
    } = parsed(head)?;
    plugin::configure::<P>(collection.into_owned(), &adapter, &settings, &shape)?;
    Ok(done(&(), Vec::new()))
}

fn read(head: &[u8]) -> Result<Answer> {
    let wire::Read {
        collection,
        conditions,
        order,
        columns,
        limit,
        cursor,
        options,
    } = parsed(head)?;
    let names = |names: Vec<Cow<'_, str>>| names.into_iter().map(Into::into).collect();
    let cursor = cursor.map(Into::into);
    let query = plugin::parse_query(
        owned_conditions(conditions),
        names(order),
        names(columns),
        limit,
        cursor,
        options.as_deref(),
    )?;
    let page = plugin::read(&collection, &query)?;
    Ok(done(
        &wire::Next {
            next: page.next.map(Into::into),
        },
        page.records.into_bytes(),
    ))
}

fn summarize(head: &[u8]) -> Result<Answer> {
    let wire::Summarize {
        collection,
        conditions,
        groups,
        measures,
        having,
        order,
        limit,
        options,
    } = parsed(head)?;
    let query = WiredQuery {
        conditions: owned_conditions(conditions),
        groups: owned_parts(groups),
        measures: owned_parts(measures),
        having: owned_conditions(having),
        order: order.into_iter().map(Into::into).collect(),
        limit,
        options: options.map(Into::into),
    };
    let page = plugin::summarize(&collection, &query.parse()?)?;
    Ok(done(
        &wire::Summarized { more: page.more },
        page.records.into_bytes(),
    ))
}

fn owned_conditions(conditions: Vec<wire::Condition<'_>>) -> Vec<(String, String, String)> {
    let parts = |condition: wire::Condition<'_>| {
        (
            condition.column.into_owned(),
            condition.comparison.into_owned(),
            condition.value.into_owned(),
        )
    };
    conditions.into_iter().map(parts).collect()
}

fn owned_parts(
    parts: Vec<(Cow<'_, str>, Cow<'_, str>, Option<Cow<'_, str>>)>,
) -> Vec<(String, String, Option<String>)> {
    let owned = |(name, other, last): (Cow<'_, str>, Cow<'_, str>, Option<Cow<'_, str>>)| {
        (name.into_owned(), other.into_owned(), last.map(Into::into))
    };
    parts.into_iter().map(owned).collect()
}

fn write(head: &[u8]) -> Result<Answer> {
    let wire::Write {
        collection,
        verb,
        key,
        record,
        options,
    } = parsed(head)?;
    let change =
        plugin::parse_change(&verb, key.as_deref(), record.as_deref(), options.as_deref())?;
    Ok(done(&(), plugin::write(&collection, &change)?.into_bytes()))
}

fn call<P: Plugin>(head: &[u8], arguments: &[u8]) -> Result<Answer> {
    let wire::Call {
        tool,
        context,
        resumed,
        options,
    } = parsed(head)?;
    let reply = tools::call::<P>(tools::Invocation {
        tool: tool.into_owned(),
        arguments: text(arguments)?.to_owned(),
        context: context.into_owned(),
        resumed: resumed.map(Into::into),
        options: options.map(Into::into),
    })?;
    Ok(encode_reply(reply))
}

fn item_definitions<P: Plugin>() -> Result<Answer> {
    let definitions = P::items()
        .map(|items| items.definitions())
        .unwrap_or_default();
    Ok(done(&(), definitions.into_bytes()))
}

fn get<P: Plugin>(head: &[u8], params: &[u8]) -> Result<Answer> {
    let wire::Call {
        tool: method,
        context,
        resumed,
        options: _,
    } = parsed(head)?;
    let items = P::items()
        .ok_or_else(|| Error::unsupported("This plugin has no prompts and resources."))?;
    let (method, context, resumed) = (
        method.into_owned(),
        context.into_owned(),
        resumed.map(Into::into),
    );
    let reply = items.get(items::Request {
        method,
        params: text(params)?.to_owned(),
        context,
        resumed,
    })?;
    Ok(encode_reply(reply))
}

fn encode_reply(reply: tools::Reply) -> Answer {
    let tools::Reply {
        kind,
        value,
        content,
        requests,
        state,
        options,
    } = reply;
    let head = wire::ReplyHead {
        kind: kind.into(),
        content: content.map(Into::into),
        requests: requests.map(Into::into),
        state: state.map(Into::into),
        options: options.map(Into::into),
    };
    done(&head, value.unwrap_or_default().into_bytes())
}

fn parsed<'a, T: Deserialize<'a>>(head: &'a [u8]) -> Result<T> {
    serde_json::from_slice(head).map_err(|_| Error::internal("The gateway's call cannot be read."))
}

fn text(body: &[u8]) -> Result<&str> {
    std::str::from_utf8(body).map_err(|_| Error::internal("The gateway's call is not text."))
}

fn done(head: &impl Serialize, body: Vec<u8>) -> Answer {
    Answer {
        status: DONE,
        head: serde_json::to_vec(head).expect("plain data"),
        body,
    }
}

fn failed(error: Error) -> Answer {
    let Error {
        code,
        message,
        field,
        retry_after_ms,
        details,
    } = error;
    let record = wire::ErrorRecord {
        code: code.into(),
        message: message.into(),
        field: field.map(Into::into),
        retry_after_ms,
        details: details.map(Into::into),
    };
    Answer {
        status: FAILED,
        head: serde_json::to_vec(&record).expect("plain data"),
        body: Vec::new(),
    }
}
