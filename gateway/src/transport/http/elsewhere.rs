//! Hands messages about sessions and tasks of another node to that node, and receives those that other nodes hand to this one.

use std::sync::{Arc, Weak};

use super::HttpServerState;
use crate::{
    era::sessions::ClientSession,
    methods::{self, RequestScope},
    node_messages::{NodeMessage, ReceivedMessage},
    wire::{RpcError, RpcResponse},
};

/// Hands a message of a caller on to all nodes. It is charged to the caller's rate, since it costs every node something. Without
/// other nodes, nothing happens.
pub(super) async fn hand_on(
    server: &HttpServerState,
    scope: &RequestScope,
    message: impl FnOnce() -> Option<NodeMessage>,
) -> Result<(), RpcError> {
    let Some(messages) = server.gateway.node_messages() else {
        return Ok(());
    };
    if let Some(message) = message() {
        let place = format!("POST {}", scope.endpoint);
        server.door.within_rate(&scope.caller, &place).await?;
        messages.send(None, &message);
    }
    Ok(())
}

/// Gives an answer to the call that asked. If no call of this process did, one at another node may have.
pub(super) async fn take_answer(
    server: &HttpServerState,
    scope: &RequestScope,
    session: &ClientSession,
    response: &RpcResponse<'_>,
) -> Result<(), RpcError> {
    let Some((question, outcome)) = session.client.answered(response) else {
        return Ok(());
    };
    let session = session.id.number();
    hand_on(server, scope, || {
        Some(NodeMessage::Answered {
            session,
            question,
            outcome,
        })
    })
    .await
}

/// Receives what other nodes hand on, as long as the server exists.
pub(super) fn take_from_nodes(server: &Arc<HttpServerState>) {
    let listening: Weak<HttpServerState> = Arc::downgrade(server);
    if let Some(messages) = server.gateway.node_messages() {
        messages.listen(move |received| {
            if let Some(server) = listening.upgrade() {
                take(&server, received);
            }
        });
    }
}

fn take(server: &HttpServerState, received: ReceivedMessage) {
    match received.message {
        NodeMessage::Cancelled { session, request } if !received.is_own => {
            if let Some(session) = server.sessions.with_number(session) {
                server.calls.cancel(&(session.id, request));
            }
        }
        NodeMessage::Answered {
            session,
            question,
            outcome,
        } if !received.is_own => {
            if let Some(session) = server.sessions.with_number(session) {
                let _ = session.client.take_answer(question, outcome); // it is another node's
            }
        }
        NodeMessage::StreamOpened { session, stream } => {
            if let Some(session) = server.sessions.with_number(session) {
                session.hear_of_stream(stream, received.is_own);
            }
        }
        NodeMessage::TaskRequested { question, request } => {
            methods::report_task(&server.gateway, &received.sender, question, request);
        }
        NodeMessage::TaskDelivered { task, entered } => {
            if let Some(task) = server.gateway.tasks().with_number(task) {
                task.note_delivered(entered);
            }
        }
        NodeMessage::Cancelled { .. }
        | NodeMessage::Answered { .. }
        | NodeMessage::TaskReported { .. } => {}
    }
}
