//! An answer with more than a value: content blocks, or a question back to the caller.

use super::{Content, Question, Reply};

/// A value with content blocks, only content blocks, or a question back.
///
/// A function that simply returns its value does not need this: the gateway makes the text from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<T = ()> {
    value: Option<T>,
    content: Option<Vec<Content>>,
    question: Option<Question>,
}

impl<T> Answer<T> {
    /// Answers with a value. Without content blocks the gateway makes the text from it.
    pub fn of(value: T) -> Self {
        Self {
            value: Some(value),
            content: None,
            question: None,
        }
    }

    /// Answers with a question: the call ends here, and comes again with the response.
    pub fn ask(question: Question) -> Self {
        Self {
            value: None,
            content: None,
            question: Some(question),
        }
    }

    /// Adds a content block.
    pub fn with(mut self, block: Content) -> Self {
        self.content.get_or_insert_default().push(block);
        self
    }

    /// Returns `true` if it answers with a value that is absent.
    pub(crate) fn is_absent(&self, is_absent: impl FnOnce(&T) -> bool) -> bool {
        self.question.is_none() && self.value.as_ref().is_some_and(is_absent)
    }

    pub(crate) fn into_reply(self, print: impl FnOnce(T) -> Option<String>) -> Reply {
        if let Some(question) = self.question {
            return question.into_reply();
        }
        Reply::complete(
            self.value.and_then(print),
            self.content.map(|blocks| Content::to_json(&blocks)),
        )
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        answer.into_reply(|()| None)
    }
}

impl Answer<()> {
    /// Answers with only content blocks.
    pub fn blocks(blocks: impl IntoIterator<Item = Content>) -> Self {
        Self {
            value: None,
            content: Some(blocks.into_iter().collect()),
            question: None,
        }
    }

    /// Answers with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks([Content::text(text)])
    }
}
