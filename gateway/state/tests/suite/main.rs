//! Tests the state on real files and on a real server, with several handles as several processes have them.

mod contracts;
mod database;
mod drafts;
mod endings;
mod file;
mod place;
#[path = "../../../connections/tests/server/mod.rs"]
mod server;
mod store;

use place::Place;
use server::Server;

/// Runs each test in a file, and all in databases of one server.
macro_rules! suite {
    ($($module:ident::$name:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    crate::$module::$name(&crate::Place::file()).await;
                }
            )+
        }

        #[tokio::test]
        async fn all_of_it_holds_in_postgresql() {
            let server = Server::started();
            $(
                println!("{}", stringify!($name));
                $module::$name(&Place::database(&server)).await;
            )+
        }
    };
}

suite![
    contracts::one_of_two_publishes_on_the_same_base_is_told_that_it_moved,
    contracts::a_name_keeps_its_history_when_it_is_retired,
    contracts::a_draft_is_held_once_and_decided_once,
    contracts::revoking_touches_one_key_and_keeps_its_row,
    contracts::the_first_admin_is_made_once,
    contracts::a_draft_that_rests_on_an_earlier_one_is_refused,
    contracts::of_the_last_operators_that_are_revoked_at_once_one_stays,
    contracts::of_superseded_drafts_the_newest_are_kept,
    drafts::the_drafts_of_one_author_are_bounded,
    contracts::what_waits_and_what_was_discarded_is_found_however_much_was_decided_since,
    contracts::a_text_that_is_kept_moves_the_revision_once,
    contracts::a_word_that_is_not_known_is_refused,
    contracts::the_feed_moves_with_what_another_process_changes,
    contracts::answers_for_retries_are_bounded_for_each_admin,
    store::a_secret_is_made_once_among_processes_that_start_together,
    store::a_shape_takes_the_place_of_the_one_before_it_and_moves_the_feed_where_it_differs,
    store::the_last_accepted_builds_are_remembered_in_order,
    store::the_last_used_builds_are_kept_and_a_shared_content_stays,
    store::the_head_of_a_chain_moves_forward_alone,
    store::a_plan_that_asked_is_found_first_and_taken_as_it_is,
    store::a_write_is_forgotten_by_the_lease_that_it_began_with,
    store::sessions_move_the_feed_and_are_taken_away_once,
    database::every_table_is_copied,
    database::notes_of_sessions_move_a_feed_of_their_own,
    database::notes_of_sessions_are_bounded,
];
