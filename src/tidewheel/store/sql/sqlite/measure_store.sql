-- Server: how the database itself is, for those who watch: the size of its file, and what of it is free.
SELECT 'file_bytes', '', CAST(pages.page_count * size.page_size AS REAL)
  FROM pragma_page_count AS pages, pragma_page_size AS size
UNION ALL
SELECT 'free_bytes', '', CAST(free.freelist_count * size.page_size AS REAL)
  FROM pragma_freelist_count AS free, pragma_page_size AS size;
