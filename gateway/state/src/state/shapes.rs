//! Recorded shapes: a start from the state asks no source.

use super::GatewayState;
use crate::{
    RecordedShape, StateError,
    columns::from_row,
    engine::{QueryTarget, sql},
};

from_row!(RecordedShape {
    contract,
    collection,
    adapter,
    settings,
    shape
});

impl GatewayState {
    /// Returns the shapes that were recorded for the collections of one contract.
    pub async fn shapes(&self, contract: &str) -> Result<Vec<RecordedShape>, StateError> {
        let query = "SELECT * FROM shapes WHERE contract = $1 ORDER BY collection";
        sql(query).bind(contract).fetch_all(&self.engine).await
    }

    /// Records a shape in the place of the one before it.
    pub async fn record_shape(&self, shape: &RecordedShape) -> Result<(), StateError> {
        record(shape, &self.engine).await
    }
}

/// Records a shape if there is none.
pub(crate) async fn keep<'e>(
    shape: &RecordedShape,
    to: impl Into<QueryTarget<'e>>,
) -> Result<(), StateError> {
    sql(
        "INSERT INTO shapes (contract, collection, adapter, settings, shape) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
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
pub(crate) async fn record<'e>(
    shape: &RecordedShape,
    to: impl Into<QueryTarget<'e>>,
) -> Result<(), StateError> {
    sql(
        "INSERT INTO shapes (contract, collection, adapter, settings, shape) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (contract, collection) DO UPDATE \
         SET adapter = excluded.adapter, settings = excluded.settings, shape = excluded.shape \
         WHERE (shapes.adapter, shapes.settings, shapes.shape) != (excluded.adapter, excluded.settings, excluded.shape)",
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
