package shop;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The newest pages, by product and by word. */
final class ProductCache {
    private final int capacity;
    private final Map<Integer, Page> byProduct = new HashMap<>();
    private final ArrayDeque<Page> oldestFirst = new ArrayDeque<>();
    private final Map<String, List<Page>> byWord = new HashMap<>();

    ProductCache(int capacity) {
        this.capacity = capacity;
    }

    Page page(int product) {
        Page page = byProduct.get(product);
        if (page == null) {
            page = new Page(product);
            add(page);
        }
        return page;
    }

    private void add(Page page) {
        if (byProduct.size() == capacity) {
            evict();
        }
        byProduct.put(page.product(), page);
        oldestFirst.addLast(page);
        index(page);
    }

    private void index(Page page) {
        for (String word : wordsOf(page)) {
            byWord.computeIfAbsent(word, any -> new ArrayList<>()).add(page);
        }
    }

    private void evict() {
        Page oldest = oldestFirst.removeFirst();
        byProduct.remove(oldest.product());
        // The leak: the index keeps the page. This line is missing:
        // wordsOf(oldest).forEach(word -> byWord.get(word).remove(oldest));
    }

    private static Set<String> wordsOf(Page page) {
        Set<String> words = new HashSet<>();
        for (Line line : page.lines()) {
            words.add(line.colour());
        }
        return words;
    }

    List<Page> withWord(String word) {
        return byWord.getOrDefault(word, List.of());
    }

    int size() {
        return byProduct.size();
    }

    int pagesInIndex() {
        Set<Page> pages = new HashSet<>();
        byWord.values().forEach(pages::addAll);
        return pages.size();
    }
}
