package org.elephanttracks.plugin;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON (RFC 8259). No reader of it comes with every build tool. */
public final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /**
     * A {@code Map}, {@code List}, {@code String}, {@code Double} or {@code Boolean}, or null.
     *
     * @throws IllegalArgumentException if the text is no JSON
     */
    public static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        if (json.peek() != '\0') {
            throw json.unexpected();
        }
        return value;
    }

    private Object value() {
        switch (peek()) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> members = new LinkedHashMap<>();
        take('{');
        if (!took('}')) {
            do {
                String name = string();
                take(':');
                members.put(name, value());
            } while (took(','));
            take('}');
        }
        return members;
    }

    private List<Object> array() {
        List<Object> elements = new ArrayList<>();
        take('[');
        if (!took(']')) {
            do {
                elements.add(value());
            } while (took(','));
            take(']');
        }
        return elements;
    }

    private String string() {
        take('"');
        StringBuilder string = new StringBuilder();
        for (char c = next(); c != '"'; c = next()) {
            string.append(c == '\\' ? escaped() : c);
        }
        return string.toString();
    }

    private char escaped() {
        char c = next();
        switch (c) {
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                if (at + 4 > text.length()) {
                    throw unexpected();
                }
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            default:
                return c;
        }
    }

    private Double number() {
        int start = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        if (start == at) {
            throw unexpected();
        }
        return Double.valueOf(text.substring(start, at));
    }

    private <T> T word(String word, T value) {
        if (!text.startsWith(word, at)) {
            throw unexpected();
        }
        at += word.length();
        return value;
    }

    /** The first character that is no space; NUL at the end. */
    private char peek() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : '\0';
    }

    private boolean took(char c) {
        boolean found = peek() == c;
        if (found) {
            at++;
        }
        return found;
    }

    private void take(char c) {
        if (!took(c)) {
            throw unexpected();
        }
    }

    private char next() {
        if (at == text.length()) {
            throw unexpected();
        }
        return text.charAt(at++);
    }

    private IllegalArgumentException unexpected() {
        return new IllegalArgumentException(at < text.length() ? "at " + at + ": " + text.charAt(at) : "it ends too early");
    }
}
