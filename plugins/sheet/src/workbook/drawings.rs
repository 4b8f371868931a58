//! The text of an ODS cell that has drawings. Pictures and shapes that are anchored to a cell are written into it, with their
//! titles and words, and calamine takes those for words of the cell.

use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use weir_plugin_sdk::Error;

use super::broken;
use super::error_cells::{VALUES, attribute};

/// Returns `true` for a cell whose value is the text within it.
pub(super) fn has_text_within(tag: &BytesStart<'_>) -> bool {
    attribute(tag, "office:value-type").as_deref() == Some("string")
        && !VALUES.iter().any(|name| attribute(tag, name).is_some())
}

/// Reads to the end of a cell. Returns its text; `None` if it has no drawings, so that what calamine returns is right.
pub(super) fn read_text<R: BufRead>(reader: &mut Reader<R>) -> Result<Option<String>, Error> {
    let unreadable = |error: quick_xml::Error| broken("ODS", &error);
    let (mut buffer, mut skipped) = (Vec::new(), Vec::new());
    let mut text = CellText::default();
    let mut has_drawings = false;
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer).map_err(unreadable)?;
        let has_content = matches!(event, Event::Start(_));
        match event {
            Event::Text(part) => text.push(&part.xml10_content()),
            Event::GeneralRef(entity) => text.push_entity(&entity).map_err(unreadable)?,
            Event::Start(tag) | Event::Empty(tag) => {
                let name = tag.name();
                let is_drawing = is_drawing(name.as_ref());
                has_drawings |= is_drawing;
                let is_other = matches!(name.as_ref(), "office:annotation" | "table:table");
                if !is_drawing && !is_other {
                    text.begin(&tag, has_content);
                } else if has_content {
                    let end = reader.read_to_end_into(name, &mut skipped);
                    end.map_err(unreadable)?;
                }
            }
            Event::End(tag) => match tag.name().as_ref() {
                "text:p" => text.is_within = false,
                "table:table-cell" | "table:covered-table-cell" => {
                    return Ok(has_drawings.then_some(text.text));
                }
                _ => {}
            },
            Event::Eof => return Ok(None),
            _ => {}
        }
    }
}

/// Returns `true` for an element that is a picture, a shape or a scene.
fn is_drawing(name: &str) -> bool {
    name.starts_with("draw:") || name.starts_with("dr3d:")
}

/// The paragraphs of a cell, each a line.
#[derive(Default)]
struct CellText {
    text: String,
    has_paragraphs: bool,
    /// The reader is within a paragraph: blanks between paragraphs are not part of the text.
    is_within: bool,
}

impl CellText {
    fn begin(&mut self, tag: &BytesStart<'_>, has_content: bool) {
        match tag.name().as_ref() {
            "text:p" => {
                if self.has_paragraphs {
                    self.text.push('\n');
                }
                (self.has_paragraphs, self.is_within) = (true, has_content);
            }
            "text:s" => {
                let count = attribute(tag, "text:c").and_then(|count| count.parse::<u16>().ok());
                self.text.push_str(&" ".repeat(count.unwrap_or(1).into()));
            }
            "text:tab" => self.text.push('\t'),
            "text:line-break" => self.text.push('\n'),
            _ => {}
        }
    }

    fn push(&mut self, part: &str) {
        if self.is_within {
            self.text.push_str(part);
        }
    }

    /// Adds a character that is written as `&amp;` or `&#38;`.
    fn push_entity(&mut self, entity: &BytesRef<'_>) -> Result<(), quick_xml::Error> {
        if let Some(text) = resolve_xml_entity(entity) {
            self.push(text);
        } else if let Some(character) = entity.resolve_char_ref()? {
            self.push(character.encode_utf8(&mut [0; 4]));
        }
        Ok(())
    }
}
