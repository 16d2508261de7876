//! What a folder keeps as examples of its events are such events.

use crate::rehearsal;
use crate::report::assert_none;
use crate::stage::Stage;

#[test]
fn each_sample_is_a_valid_event_of_its_folder() {
    let stage = Stage::shipped();
    let events = stage
        .samples()
        .map(|(folder, sample)| rehearsal::event(&stage.catalogue, folder.event_type(), sample));
    let problems: Vec<_> = events.filter_map(Result::err).collect();
    assert_none(&stage.source, &problems);
}
