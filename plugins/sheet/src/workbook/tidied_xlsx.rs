//! An XLSX workbook whose parts have the forms that calamine reads. Programs for phones write parts in UTF-16, LibreOffice gives
//! a sheet that is used up to its last column a `dimension` without columns, and Excel lists macros of its first versions as sheets
//! without a part: calamine refuses all three.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::ops::Range;

use calamine::{Reader as _, Xlsx};
use memchr::{memchr, memmem};
use weir_plugin_sdk::Error;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::broken;

/// The bound on parts that are written anew in memory.
const CHANGED_BYTES_MAX: usize = 16 << 20;
/// The bytes of a part in which its encoding and the `dimension` of a sheet stand.
const HEAD_BYTES: u64 = 8 << 10;
const DIMENSION: &[u8] = b"dimension";

/// Opens a workbook. `tidied` takes what is read in the place of a workbook with other forms.
pub(super) fn open<'b>(
    bytes: &'b [u8],
    tidied: &'b mut Vec<u8>,
) -> Result<Xlsx<Cursor<&'b [u8]>>, Error> {
    let bytes = match tidy(bytes)? {
        Some(written) => {
            *tidied = written;
            &tidied[..]
        }
        None => bytes,
    };
    Xlsx::new(Cursor::new(bytes)).map_err(|error| broken("XLSX", &error))
}

/// Returns the workbook with the parts that have other forms changed; `None` if there are none.
fn tidy(bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let unreadable = |error: &dyn std::fmt::Display| broken("XLSX", error);
    // calamine says what is wrong with an archive that cannot be opened.
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else {
        return Ok(None);
    };
    let mut changed = changed_parts(&mut archive)?;
    if changed.is_empty() {
        return Ok(None);
    }
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..archive.len() {
        let Some((name, content)) = changed.remove(&index) else {
            let part = archive
                .by_index_raw(index)
                .map_err(|error| unreadable(&error))?;
            out.raw_copy_file(part)
                .map_err(|error| unreadable(&error))?;
            continue;
        };
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        out.start_file(name, options)
            .map_err(|error| unreadable(&error))?;
        out.write_all(&content)
            .map_err(|error| unreadable(&error))?;
    }
    let out = out.finish().map_err(|error| unreadable(&error))?;
    Ok(Some(out.into_inner()))
}

/// Returns the parts that have other forms, changed, by their index with their names.
fn changed_parts(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
) -> Result<BTreeMap<usize, (String, Vec<u8>)>, Error> {
    let mut changed = BTreeMap::new();
    let mut total = 0;
    for index in 0..archive.len() {
        let Ok(mut part) = archive.by_index(index) else {
            continue;
        };
        let Ok(name) = part.name().map(Cow::into_owned) else {
            continue;
        };
        let mut content = Vec::new();
        let is_markup = name.ends_with(".xml") || name.ends_with(".rels");
        let head_max = match name.ends_with("workbook.xml") {
            true => CHANGED_BYTES_MAX as u64,
            false => HEAD_BYTES,
        };
        let mut head = part.by_ref().take(head_max);
        if !is_markup || head.read_to_end(&mut content).is_err() {
            continue;
        }
        let has_other_form = is_utf_16(&content)
            || odd_dimension(&content).is_some()
            || !lost_sheets(&content).is_empty();
        if !has_other_form {
            continue;
        }
        let mut rest = part.take((CHANGED_BYTES_MAX - total) as u64 + 1);
        rest.read_to_end(&mut content)
            .map_err(|error| broken("XLSX", &error))?;
        total += content.len();
        if total > CHANGED_BYTES_MAX {
            let mib = CHANGED_BYTES_MAX >> 20;
            return Err(Error::unsupported(format!(
                "The workbook has parts of an uncommon form with more than {mib} MiB; save it with a spreadsheet program."
            )));
        }
        changed.insert(index, (name, tidied_part(content)));
    }
    Ok(changed)
}

/// Returns a part in UTF-8, with a `dimension` that is a range, and without sheets that have no part.
fn tidied_part(content: Vec<u8>) -> Vec<u8> {
    let mut content = match is_utf_16(&content) {
        true => decoded_utf_16(&content),
        false => content,
    };
    if let Some(place) = odd_dimension(&content) {
        // The cells say where they are, and nothing is taken from the range.
        drop(content.splice(place, *b"dimension ref=\"A1\""));
    }
    for entry in lost_sheets(&content).into_iter().rev() {
        drop(content.drain(entry));
    }
    content
}

/// Returns `true` for UTF-16 with its mark, or without one where a tag begins.
fn is_utf_16(content: &[u8]) -> bool {
    matches!(
        content,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'<', 0, ..] | [0, b'<', ..]
    )
}

/// Returns the text of a part in UTF-16 without its declaration, which names the encoding.
fn decoded_utf_16(content: &[u8]) -> Vec<u8> {
    let from_bytes = match content {
        [0xff | b'<', ..] => u16::from_le_bytes,
        _ => u16::from_be_bytes,
    };
    let pairs = content.chunks_exact(2);
    let units: Vec<u16> = pairs.map(|pair| from_bytes([pair[0], pair[1]])).collect();
    let text = String::from_utf16_lossy(&units);
    let text = text.trim_start_matches('\u{feff}');
    let declared = text.strip_prefix("<?xml");
    let behind = declared.and_then(|declared| declared.split_once("?>"));
    behind.map_or(text, |(_, behind)| behind).into()
}

/// Finds the name and the attributes of a sheet's `dimension` that is no range of cells. It is a hint for programs.
fn odd_dimension(content: &[u8]) -> Option<Range<usize>> {
    let head = &content[..content.len().min(HEAD_BYTES as usize)];
    let at = memmem::find(head, DIMENSION)?;
    let is_of_sheet = memmem::find(&head[..at], b"worksheet").is_some();
    let is_tag = matches!(&head[..at], [.., b'<' | b':'])
        && matches!(
            head.get(at + DIMENSION.len()),
            Some(b' ' | b'\t' | b'\r' | b'\n' | b'/' | b'>')
        );
    if !is_of_sheet || !is_tag {
        return None;
    }
    let end = at + memchr(b'>', &head[at..])?;
    let tag = head[at..end].strip_suffix(b"/").unwrap_or(&head[at..end]);
    match value_of(tag, b"ref=").is_some_and(is_range) {
        true => None,
        false => Some(at..at + tag.len()),
    }
}

/// Finds the entries of sheets that have no part.
fn lost_sheets(content: &[u8]) -> Vec<Range<usize>> {
    let mut lost = Vec::new();
    let Some(list) = memmem::find(content, b"sheets>") else {
        return lost;
    };
    let mut at = list;
    while let Some(begin) = memchr(b'<', &content[at..]).map(|begin| at + begin)
        && let Some(end) = tag_end(content, begin)
    {
        let tag = &content[begin..end];
        if tag.starts_with(b"</") && tag.ends_with(b"sheets>") {
            break;
        }
        at = end;
        let has_part = value_of(tag, b":id=").is_some_and(|id| !id.is_empty());
        if is_sheet(tag) && !has_part {
            if !tag.ends_with(b"/>") {
                at = memchr(b'>', &content[end..]).map_or(content.len(), |more| end + more + 1);
            }
            lost.push(begin..at);
        }
    }
    lost
}

/// Returns the place behind a tag. An attribute may have the sign that ends one.
fn tag_end(content: &[u8], begin: usize) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in content.iter().enumerate().skip(begin) {
        match (quote, *byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// Returns `true` for the tag of a sheet in the list of them, with a prefix or without.
fn is_sheet(tag: &[u8]) -> bool {
    let is_name = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'/' | b'>');
    let name = tag[1..].split(|byte| !is_name(byte)).next();
    name.is_some_and(|name| name == b"sheet" || name.ends_with(b":sheet"))
}

/// Returns the value of an attribute, which is named with its sign `=`.
fn value_of<'t>(tag: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let value = &tag[memmem::find(tag, name)? + name.len()..];
    let (quote, value) = value.split_first()?;
    Some(&value[..memchr(*quote, value)?])
}

/// Returns `true` for one cell, `B2`, or two, `B2:C7`.
fn is_range(text: &[u8]) -> bool {
    let is_cell = |cell: &[u8]| {
        let letters = cell.iter().take_while(|byte| byte.is_ascii_alphabetic());
        let (column, row) = cell.split_at(letters.count());
        !column.is_empty() && !row.is_empty() && row.iter().all(u8::is_ascii_digit)
    };
    let mut cells = text.split(|byte| *byte == b':');
    cells.clone().count() <= 2 && cells.all(is_cell)
}
