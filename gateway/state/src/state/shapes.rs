//! Recorded shapes: a start from the state asks no source.

use sqlx::SqliteExecutor;

use super::{State, columns::from_row};
use crate::{RecordedShape, StateError};

from_row!(RecordedShape {
    contract,
    collection,
    adapter,
    settings,
    shape
});

impl State {
    /// Returns the shapes that were recorded for the collections of one contract.
    pub async fn shapes(&self, contract: &str) -> Result<Vec<RecordedShape>, StateError> {
        let query = "SELECT * FROM shapes WHERE contract = ? ORDER BY collection";
        Ok(sqlx::query_as(query)
            .bind(contract)
            .fetch_all(&self.pool)
            .await?)
    }

    /// Records a shape in the place of the one before it.
    pub async fn record_shape(&self, shape: &RecordedShape) -> Result<(), StateError> {
        record(shape, &self.pool).await
    }
}

/// Records a shape where there is none.
pub(super) async fn keep<'e>(
    shape: &RecordedShape,
    to: impl SqliteExecutor<'e>,
) -> Result<(), StateError> {
    sqlx::query(
        "INSERT INTO shapes (contract, collection, adapter, settings, shape) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    )
    .bind(&shape.contract)
    .bind(&shape.collection)
    .bind(&shape.adapter)
    .bind(&shape.settings)
    .bind(&shape.shape)
    .execute(to)
    .await?;
    Ok(())
}

/// The same shape again changes nothing.
pub(super) async fn record<'e>(
    shape: &RecordedShape,
    to: impl SqliteExecutor<'e>,
) -> Result<(), StateError> {
    sqlx::query(
        "INSERT INTO shapes (contract, collection, adapter, settings, shape) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (contract, collection) DO UPDATE \
         SET adapter = excluded.adapter, settings = excluded.settings, shape = excluded.shape \
         WHERE (adapter, settings, shape) IS NOT (excluded.adapter, excluded.settings, excluded.shape)",
    )
    .bind(&shape.contract)
    .bind(&shape.collection)
    .bind(&shape.adapter)
    .bind(&shape.settings)
    .bind(&shape.shape)
    .execute(to)
    .await?;
    Ok(())
}
