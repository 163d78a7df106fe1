package shop;

/** Turns a request into the text of an answer. */
interface RequestHandler {
    String answer(Request request);
}
