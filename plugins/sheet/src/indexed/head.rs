//! The beginning of a file, kept by the file's version.

use std::cell::RefCell;
use std::rc::Rc;

use weir_plugin_sdk::Error;
use weir_plugin_sdk::files::Info;

use super::SheetSource;
use crate::header::names;
use crate::layout::DelimitedLayout;
use crate::scan::{is_header, no_header};
use crate::settings::{SheetFormat, SheetSettings};
use crate::stream::{DelimitedParser, RowFlow, read_pieces};
use crate::table::SheetRow;

/// The beginning of a file: how it is written, its header, and where its rows begin.
#[derive(Debug)]
pub(crate) struct SheetHead {
    pub(crate) layout: DelimitedLayout,
    pub(crate) names: Vec<String>,
    pub(crate) body_at: u64,
    /// The rows up to the header; blank lines are not counted.
    pub(crate) rows: u64,
    /// The header has a quote that is never closed, and is all of the file.
    pub(crate) is_open: bool,
}

thread_local! { static HEADS: RefCell<Vec<(String, String, Rc<SheetHead>)>> = const { RefCell::new(Vec::new()) }; }
const HEADS_MAX: usize = 16;

impl SheetHead {
    pub(super) fn cached(settings: &SheetSettings, info: &Info) -> Result<Rc<Self>, Error> {
        let source = SheetSource::source(settings);
        let known = HEADS.with_borrow(|heads| {
            let mut known = heads
                .iter()
                .filter(|(of, version, _)| *of == source && *version == info.version);
            known.next().map(|(.., head)| head.clone())
        });
        if let Some(head) = known {
            return Ok(head);
        }
        let head = Rc::new(Self::read(settings, info)?);
        HEADS.with_borrow_mut(|heads| {
            heads.retain(|(of, ..)| *of != source);
            if heads.len() == HEADS_MAX {
                heads.remove(0);
            }
            heads.push((source, info.version.clone(), head.clone()));
        });
        Ok(head)
    }

    pub(super) fn read(settings: &SheetSettings, info: &Info) -> Result<Self, Error> {
        let SheetFormat::Delimited(delimiter) = settings.format else {
            return Err(no_header());
        };
        let mut parser: Option<DelimitedParser> = None;
        let mut head = None;
        let mut layout = None;
        let mut row = |layout: DelimitedLayout,
                       number: u64,
                       row: SheetRow<'_>,
                       span: std::ops::Range<usize>| {
            if !is_header(settings, number, row) {
                return Ok(RowFlow::Continue);
            }
            // A line end that is added after the file is not part of it.
            let body_at = info.size.min(span.end as u64);
            head = Some(Self {
                layout,
                names: names(row.cells()),
                body_at,
                rows: number,
                is_open: false,
            });
            Ok(RowFlow::Stop)
        };
        read_pieces(settings, info.size, |piece| {
            let layout = match layout {
                Some(layout) => layout,
                None => *layout.insert(DelimitedLayout::find(
                    piece,
                    delimiter,
                    settings.header_row,
                )?),
            };
            let parser = parser.get_or_insert_with(|| DelimitedParser::new(layout));
            parser.feed(piece, &mut |number, cells, span| {
                row(layout, number, cells, span)
            })
        })?;
        let mut is_open = false;
        if let (Some(mut parser), Some(layout)) = (parser, layout) {
            let mut row = |number, cells: SheetRow<'_>, span| row(layout, number, cells, span);
            parser.feed(b"\n", &mut row)?;
            is_open = parser.is_within_row();
            parser.finish(&mut row)?;
        }
        head.map(|head| Self { is_open, ..head })
            .ok_or_else(no_header)
    }
}
