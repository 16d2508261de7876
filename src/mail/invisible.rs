//! Characters that are drawn as nothing, or that change how what follows them is drawn.

/// White space of any script, control characters, and whatever is drawn as nothing at all.
pub fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || is_disturbing(c)
        || is_joiner(c)
        || is_selector(c)
        || matches!(
            c,
            '\u{115F}'
                | '\u{1160}'
                | '\u{17B4}'
                | '\u{17B5}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{FFA0}'
        )
}

/// Drops what is invisible around an address or a name. It comes from copying the text.
pub fn trim_invisible(text: &str) -> &str {
    text.trim_matches(is_invisible)
}

/// The text as a template may have it. It reaches no further than itself: directions, which turn around what follows,
/// and other controls are dropped, and separators of lines that aren't line feeds become spaces.
///
/// What scripts and emoji are written with stays: joiners between characters, selectors of variants, and the tags
/// of a flag. A text without anything that is visible is empty.
pub fn visible(text: &str) -> String {
    if text.chars().all(is_invisible) && !text.chars().all(|c| c.is_ascii_whitespace()) {
        return String::new();
    }
    let mut kept = String::with_capacity(text.len());
    let mut in_flag = false;
    for c in text.chars() {
        in_flag = c == FLAG || (in_flag && is_tag(c));
        match c {
            '\n' | '\r' | '\t' => kept.push(c),
            '\u{2028}' | '\u{2029}' => kept.push(' '),
            c if c.is_control() => kept.push(' '),
            c if is_tag(c) && in_flag => kept.push(c),
            c if is_disturbing(c) => {}
            c => kept.push(c),
        }
    }
    kept.trim_matches(|c: char| !c.is_ascii() && (c.is_whitespace() || is_joiner(c)))
        .to_owned()
}

/// What no text needs: controls, directions, and marks that have no shape.
/// <https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters>,
/// <https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt> (`Default_Ignorable_Code_Point`)
fn is_disturbing(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{AD}'
                | '\u{61C}'
                | '\u{180E}'
                | '\u{200B}'
                | '\u{200E}'
                | '\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E00FF}'
                | '\u{E01F0}'..='\u{E0FFF}'
        )
}

/// The non-joiner, the joiner and the grapheme joiner: Persian, Indic scripts and emoji are written with them.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200C}' | '\u{200D}' | '\u{34F}')
}

/// They choose one of several shapes of the character before them.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{180B}'..='\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// The black flag that begins the flags of England, Scotland and Wales.
const FLAG: char = '\u{1F3F4}';

fn is_tag(c: char) -> bool {
    matches!(c, '\u{E0020}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_never_reaches_beyond_its_text() {
        for c in [
            '\u{61C}', '\u{200E}', '\u{200F}', '\u{202A}', '\u{202B}', '\u{202C}', '\u{202D}',
            '\u{202E}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}', '\u{206A}', '\u{206F}',
        ] {
            assert_eq!(visible(&format!("{c}Sa{c}m{c}")), "Sam", "{c:?}");
        }
    }

    #[test]
    fn what_has_no_shape_is_dropped_and_controls_become_spaces() {
        assert_eq!(visible("\u{FEFF}S\u{AD}a\u{200B}m\u{2060}\u{E0041}"), "Sam");
        assert_eq!(visible("Sam\u{1B}Vimes\u{2028}Jr\u{85}."), "Sam Vimes Jr .");
        assert_eq!(visible("\u{3000}Sam\u{A0}\u{200D}"), "Sam");
        for text in [
            "\u{3164}",
            "\u{200D}\u{200C}",
            "\u{3000} \u{A0}",
            "\u{202E}",
            "\u{2800}",
        ] {
            assert_eq!(visible(text), "", "{text:?}");
        }
    }

    #[test]
    fn what_scripts_and_emoji_are_written_with_stays() {
        for text in [
            "👩\u{200D}👩\u{200D}👧",
            "می\u{200C}خواهم",
            "क\u{94D}\u{200D}ष",
            "❤\u{FE0F}",
            "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F} Harry",
            "two\nlines\tand a tab",
            " ",
            "ليلى حداد",
        ] {
            assert_eq!(visible(text), text);
        }
    }
}
