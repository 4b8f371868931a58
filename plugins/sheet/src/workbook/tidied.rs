//! An ODS workbook without the blanks and comments between its elements. Some programs write one element per line, and
//! calamine refuses anything between the cells of a row.

use std::io::{BufReader, Cursor, Read, Write};

use calamine::{Ods, OdsError, Reader as _};
use quick_xml::events::Event;
use quick_xml::{Reader, Writer};
use weir_plugin_sdk::Error;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::broken;

/// The bound on a part that is rewritten in memory, where calamine needs as much again for the cells.
const PART_BYTES_MAX: usize = 16 << 20;
const CONTENT: &str = "content.xml";

/// Opens a workbook. `tidied` receives the data to read instead of a workbook with blanks between its cells.
pub(super) fn open<'b>(
    bytes: &'b [u8],
    tidied: &'b mut Vec<u8>,
) -> Result<Ods<Cursor<&'b [u8]>>, Error> {
    let opened: Result<Ods<_>, OdsError> = match Ods::new(Cursor::new(bytes)) {
        Err(OdsError::Mismatch { .. }) => {
            *tidied = tidy(bytes)?;
            Ods::new(Cursor::new(&tidied[..]))
        }
        opened => opened,
    };
    opened.map_err(|error| broken("ODS", &error))
}

/// Returns the parts of a workbook that calamine reads, uncompressed.
fn tidy(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let unreadable = |error: &dyn std::fmt::Display| broken("ODS", error);
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| unreadable(&error))?;
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for name in ["mimetype", "META-INF/manifest.xml", CONTENT] {
        let Ok(part) = archive.by_name(name) else {
            continue;
        };
        let content = if name == CONTENT {
            without_blanks(part)?
        } else {
            let mut content = Vec::new();
            let read = part.take(PART_BYTES_MAX as u64).read_to_end(&mut content);
            read.map_err(|error| unreadable(&error))?;
            content
        };
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        out.start_file(name, options)
            .map_err(|error| unreadable(&error))?;
        out.write_all(&content)
            .map_err(|error| unreadable(&error))?;
    }
    let out = out.finish().map_err(|error| unreadable(&error))?;
    Ok(out.into_inner())
}

/// Returns XML without comments, and without the blanks outside paragraphs.
fn without_blanks(content: impl Read) -> Result<Vec<u8>, Error> {
    let mut reader = Reader::from_reader(BufReader::new(content));
    reader.config_mut().check_end_names = false;
    let mut out = Writer::new(Vec::new());
    let mut paragraphs = 0_u32;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let event = event.map_err(|error| broken("ODS", &error))?;
        match &event {
            Event::Start(tag) if tag.name().as_ref() == "text:p" => paragraphs += 1,
            Event::End(tag) if tag.name().as_ref() == "text:p" => {
                paragraphs = paragraphs.saturating_sub(1)
            }
            Event::Text(text) if paragraphs == 0 && text.xml10_content().trim().is_empty() => {
                continue;
            }
            Event::Comment(_) => continue,
            Event::Eof => return Ok(out.into_inner()),
            _ => {}
        }
        out.write_event(event)
            .map_err(|error| broken("ODS", &error))?;
        if out.get_ref().len() > PART_BYTES_MAX {
            let mib = PART_BYTES_MAX >> 20;
            return Err(Error::unsupported(format!(
                "The workbook has blanks between its cells and more than {mib} MiB of content; save it with a spreadsheet program."
            )));
        }
    }
}
